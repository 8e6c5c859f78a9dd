"""The activator: holds requests of services without a warm replica and asks for one.

- the process and its ports: process, proxy, metrics
- requests that are held: request_buffer, service_queue, waiting_line, held_request, refusals
- their replicas: dispatcher, forwarding, byte_pipe
- HTTP/1.1: http_handler, http_request
- gRPC: grpc_proxy, grpc_servers, grpc_attempt, http2_heads, hpack_fields, replayable_stream,
  replica_channels
- the operator's API: operator_client, client_tls
"""
