"""Benchmarks of the model server next to bare ASGI applications."""
