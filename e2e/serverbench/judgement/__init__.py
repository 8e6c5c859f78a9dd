"""Compares measured figures with the promised ones, and reports the result."""
