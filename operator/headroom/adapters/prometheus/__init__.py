"""A Prometheus as the source of metrics: bounded queries."""
