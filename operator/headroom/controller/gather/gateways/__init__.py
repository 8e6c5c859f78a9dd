"""Counts of a service at its gateways, and the requests that its activators hold."""
