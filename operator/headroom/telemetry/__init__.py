"""Reads what model servers expose into the samples that the decision works on. Pure.

- pages: where a page's values are, and what a profile calls them
- bounds: what is physically possible
- samples: counts and gauges of a pod, checked
- other sources: headroom_page, prometheus_pages, promql, recording
"""
