"""Models the tail latency of replicas under load, and corrects the model by measurements."""
