"""The conditions of a tick: status, reason, message and next step of each. Pure.

- all of them: condition_rules, condition_result, damping, held_conditions, next_steps
- SLO and demand: slo_conditions, feasibility_conditions, demand_conditions, class_conditions,
  token_conditions
- replicas: scaling_conditions, limit_conditions, replica_conditions, replica_messages,
  zero_replicas
- inputs: metrics_conditions, routing_conditions
"""
