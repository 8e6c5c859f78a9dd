"""The Kubernetes API: a connection, lists, paths, and the kept parts of its objects."""
