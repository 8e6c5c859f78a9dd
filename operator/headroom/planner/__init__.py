"""Capacity planning: from a workload, a cost and a promise to replicas, and back."""
