"""HTTP: the application, the fast path for inference, and connections.

- the application: app, routes, control, middleware, failures, documentation, openapi
- inference: direct, inference, parsing_turns, fair_turns
- a connection: http_protocol, http_answers, http_refusals, http_options, known_heads, close_policy
- bytes in: read_turns, socket_reads, receiving
- streamed responses: response_stream, socket_stream
"""
