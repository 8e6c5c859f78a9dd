"""Learns what a batch costs: a line over batch sizes, its variation, and each replica's speed."""
