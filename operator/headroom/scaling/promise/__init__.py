"""Learns from a service's own misses: its error budget, margin, reserve and risk level."""
