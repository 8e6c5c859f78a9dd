"""A service's port: Envoy's listener and filters. Pure.

- the whole: listeners, routes, model_routes
- a request: client_headers, request_bodies, request_deadlines, retries
- tenants: client_tokens, tenant_rates, tenant_in_flight
- answers: local_replies, access_counts
"""
