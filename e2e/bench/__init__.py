"""Benchmarks of the operator, the gateway and the model server, each figure with its bound."""
