"""Serves models: each has its own queue, intake and metrics, and loads while others serve."""
