"""What the operator shows of itself over HTTP: /livez, /readyz, /metrics."""
