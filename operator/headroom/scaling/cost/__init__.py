"""Learns the cost of a batch: a line over batch sizes, its variation, and each replica's speed."""
