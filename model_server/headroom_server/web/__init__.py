"""HTTP: the application, its short way for inference, and its connections."""
