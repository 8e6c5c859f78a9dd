"""Exports the cost of vLLM's iterations as Prometheus counters."""
