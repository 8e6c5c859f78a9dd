"""Generates the tables of the tail-latency model, and the simulated points that validate it."""
