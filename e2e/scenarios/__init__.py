"""Scenarios on a real API server and on a real node: `make scenarios`."""
