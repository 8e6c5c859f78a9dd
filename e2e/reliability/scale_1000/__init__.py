"""The operator's cost with 1000 services on a real API server."""
