"""Step 4 of a tick: conditions, status, events, the SLO's error budget and recordings.

- conditions: condition_rules, condition_result, damping, next_steps, replica_messages;
  scaling_conditions, metrics_conditions, slo_conditions, held_conditions,
  demand_conditions, feasibility_conditions, limit_conditions, replica_conditions,
  routing_conditions, class_conditions, token_conditions, zero_replicas
- writing: reporter, tick_status, status_throttle, status_writer, events, event_poster, state
- figures: display, evaluation, error_budget, arrival_counter, recording
"""
