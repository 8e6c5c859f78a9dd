"""Reads what model servers expose into the samples that the decision works on. Pure.

- a page: exposition, positions, class_positions, generation_positions, recent_layouts,
  headroom_page, page_positions, profile_reader, reading, continued_page, stated_limits
- samples: pod_samples, sampling, accounts, given_up, baseline, derived_batches, derived_gauges
- checks: page_checks, physical_bounds, generation_bounds, errors
- other sources: prometheus_pages, promql, recording
"""
