"""Pods that are replicas of a workload, the state of each, and its reason."""
