"""PURE. Requests and answers as bytes: Open Inference Protocol v2 and typed JSON."""
