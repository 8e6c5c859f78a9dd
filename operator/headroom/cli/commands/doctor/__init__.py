"""`headroom doctor`: reads the facts once, then derives findings, each with its remedy.

- the facts: facts, gather, cluster_reading, pod_probe, operator_deployment
- the findings: command, examination, findings, `checks/`
"""
