"""Benchmarks of the gateway: routing, changes of replicas, tenants, scale from zero."""
