"""`headroom doctor`: reads the facts once, then derives findings, each with its remedy.

- the facts: facts, gather, cluster_reading, pod_probe, operator_deployment
- the findings: command, examination, findings
- checks of the cluster: cluster_checks, operator_checks, certificate_checks, node_checks
- checks of services: service_checks, eviction_checks, routing_checks, telemetry_checks,
  metric_names, prometheus_checks, profile_remedy, token_checks
- conditions that no check explains: condition_checks, condition_remedies
"""
