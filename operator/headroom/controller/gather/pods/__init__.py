"""Which pods are replicas of a workload, the state of each, and why."""
