"""`headroom doctor`: reads the facts once, then derives findings, each with its remedy.

- The command: command, examination, findings.
- What is read: gather, cluster_reading, pod_probe, operator_deployment, facts.
- Checks of the installation: cluster_checks, operator_checks, certificate_checks, node_checks,
  eviction_checks.
- Checks of one service: service_checks, routing_checks, telemetry_checks, prometheus_checks,
  token_checks, condition_checks.
- Remedies: condition_remedies, profile_remedy.
"""
