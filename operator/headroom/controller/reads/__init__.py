"""What a tick reads: the workload, its pods, and what they say of themselves."""
