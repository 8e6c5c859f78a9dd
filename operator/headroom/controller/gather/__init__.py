"""Step 1 of a tick: read the workload, pods, metrics, gateway counters and other autoscalers."""
