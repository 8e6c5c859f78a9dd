"""Encoding of requests and responses: Open Inference Protocol v2 and typed JSON. Pure."""
