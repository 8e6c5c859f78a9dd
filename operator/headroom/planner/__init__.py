"""Capacity planning: replicas for a workload, a cost and an SLO target. Pure.

- a cost and a target: replicas, queueing, batching, ceiling, utilization_curve, curve_plot,
  feasibility
- a workload: demand, trace_plan, fan_out, latency_budget
- a measurement: load_sweep, cost_from_load
- services that generate: the package generation
- hardware and errors: accelerators, errors
"""
