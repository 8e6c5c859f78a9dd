"""Learns from a service's own misses: its error budget, its margin and its risk level."""
