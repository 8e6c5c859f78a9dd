"""The operator on a real API server: faults, several operators, existing workloads, Prometheus."""
