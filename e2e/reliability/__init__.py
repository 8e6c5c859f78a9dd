"""What the operator does under faults, shown on a real API server: `make reliability`."""
