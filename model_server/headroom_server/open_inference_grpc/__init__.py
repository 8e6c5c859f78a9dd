"""Open Inference Protocol v2 over gRPC; imported only where HEADROOM_GRPC_PORT is set.

`messages_pb2` is generated from `messages.proto` by `make proto`, and has a descriptor pool
of its own: a model that itself calls a server with a client such as tritonclient registers messages
of the same names in the process-wide pool, which holds each name once.
"""
