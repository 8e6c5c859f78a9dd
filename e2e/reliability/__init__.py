"""The operator under faults, on a real API server: `make reliability`."""
