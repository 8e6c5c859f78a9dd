"""The metrics of ready pods, from themselves or from a Prometheus, within bounded memory."""
