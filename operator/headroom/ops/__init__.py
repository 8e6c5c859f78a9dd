"""The operator's own endpoints: /livez, /readyz and /metrics."""
