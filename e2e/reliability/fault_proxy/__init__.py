"""A proxy in front of the API server that injects faults and records exchanges."""
