"""Benchmarks of the shipped operator on a local node."""
