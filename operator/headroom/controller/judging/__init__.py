"""What clients see, as the gateways count it: judged there, while replicas feed the model."""
