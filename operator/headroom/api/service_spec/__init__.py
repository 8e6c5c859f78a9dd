"""`spec`: what users state of a service, one module per part. Pure.

- all of it, with the rules between parts: spec
- SLO: service_level, objectives, token_objectives
- replicas: scaling, schedules, cron_times, rollout, warmup
- server: runtime, pod_template, quantities, common_metadata, model, custom_metrics,
  telemetry_source
- existing workload: target_ref
- the other one of two pools: prefill_ref
- routes: routing, routing_rules, traffic, client_tokens, class_promises
"""
