"""A proxy in front of the API server that injects faults: which, where, and what it saw."""
