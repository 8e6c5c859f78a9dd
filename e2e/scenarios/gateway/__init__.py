"""Gateway mode on a real node: for new services and for existing workloads."""
