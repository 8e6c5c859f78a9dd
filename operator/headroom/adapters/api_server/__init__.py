"""The Kubernetes API: a connection, lists, paths, and what is kept of its objects."""
