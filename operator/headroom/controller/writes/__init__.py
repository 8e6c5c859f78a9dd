"""What a tick writes of a workload: its objects where they drifted, and its replicas."""
