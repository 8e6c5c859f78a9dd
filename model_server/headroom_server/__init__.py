"""The Headroom model server: one model, batched on one device, ready only when warm."""

__version__ = "0.1.0"
