"""Open Inference Protocol v2 over gRPC; imported only if HEADROOM_GRPC_PORT is set.

`messages_pb2` is generated from `messages.proto` by `make proto`, and has its own descriptor pool:
a model that itself uses a client such as tritonclient registers messages of the same names in the
process-wide pool, which accepts each name once.
"""
