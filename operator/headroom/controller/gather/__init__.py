"""Step 1 of a tick: read the workload, pods, metrics, gateway counters and other autoscalers.

- the step: gather_tick, state
- workloads: the workload and what is read once for several services
- pods: which pods are replicas, and the state of each
- revisions: which pods have the latest template
- metrics: the pages of ready pods
- gateways: what gateways counted and activators hold
- other_writers: what else scales the workload
"""
