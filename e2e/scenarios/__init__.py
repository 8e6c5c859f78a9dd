"""Scenarios on a real API server and on a real node: `make scenarios`.

- testbed: the control plane and the node themselves
- specs: what the API server stores, and with which message it rejects the rest
- api_server: the operator on a real API server, under faults and with existing workloads
- services: services from apply to deletion on a real node
- gateway: Gateway mode on a real node
- installation: the chart, the release, and the documented commands
"""
