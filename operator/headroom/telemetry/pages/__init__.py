"""Reads a page of metrics: where its values are, which of them a profile names. Pure."""
