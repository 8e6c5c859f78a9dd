"""Open Inference Protocol v2 over gRPC; imported only if HEADROOM_GRPC_PORT is set.

- the server: server, health
- what arrives before the library: front, http2_heads, hpack_fields
- all calls: calls, message_reads, read_turns, wire_bounds, failures
- models that batch: service, messages, repository_methods
- generated text: generation_service, text_requests, text_serving, text_answers
- ModelStreamInfer: streams, streamed_service, stream_reads, stream_writer

`messages_pb2` is generated from `messages.proto` by `make proto`, and has its own descriptor pool:
a model that itself uses a client such as tritonclient registers messages of the same names in the
process-wide pool, which accepts each name once.
"""
