"""HTTP: the application, the fast path for inference, and connections."""
