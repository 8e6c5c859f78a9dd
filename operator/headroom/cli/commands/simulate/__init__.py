"""`headroom simulate`: runs autoscalers on scenarios, and reports the comparison."""
