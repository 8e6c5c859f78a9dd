"""A model that batches: its queue, its devices, and the requests in flight."""
