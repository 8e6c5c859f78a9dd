"""The Headroom model server: ready only when warm, batches whatever waits, loses nothing."""

__version__ = "0.1.0"
