"""Certificates: issued, read, and used for mutual TLS."""
