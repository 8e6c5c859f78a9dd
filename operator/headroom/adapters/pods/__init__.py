"""Requests to untrusted pods and servers: scrapes, warm-ups, probes, measurements."""
