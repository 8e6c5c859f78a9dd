"""Headroom: keeps a latency promise for GPU inference on Kubernetes with the fewest GPUs."""
