"""Keeps the promise by evidence: the margin, the hold and the replicas that own misses ask for."""
