"""The Headroom model server: dynamic batching, readiness only when warm, no request lost."""

__version__ = "0.1.0"
