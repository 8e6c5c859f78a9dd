"""Precision and time of the semantic cache."""
