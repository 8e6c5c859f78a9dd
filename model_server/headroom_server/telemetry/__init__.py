"""Counts requests and batches, and renders metrics as Prometheus text."""
