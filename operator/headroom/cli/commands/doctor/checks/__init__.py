"""Checks of the doctor: one generator of findings per check, from facts alone.

- the cluster: cluster_checks, operator_checks, certificate_checks, node_checks
- services: service_checks, eviction_checks, routing_checks, telemetry_checks, metric_names,
  prometheus_checks, profile_remedy, token_checks
- conditions that no check explains: condition_checks, condition_remedies
"""
