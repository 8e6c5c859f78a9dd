"""Step 1 of a tick: read the workload, pods, metrics, gateway counters and other autoscalers.

- the step: gather_tick, state
- workload and pods: workload, shared_reads, listed_parts, pruned, pods, pod_state,
  container_faults, slow_start, model_download, pod_ownership
- metrics: metrics_reader, scrape_failure, prometheus_answers, page_room,
  gateway_counters, gateway_pages, route_status
- other writers: other_scalers, autoscalers, replica_writers
"""
