"""`status`: what the operator observed and decided, one module per part. Pure.

- all of it: status, status_rendering, status_reading
- parts: conditions, decision_status, demand_status, signals_status, slo_status, cost_status,
  generation_status, class_status
- types of fields: status_types, status_durations
"""
