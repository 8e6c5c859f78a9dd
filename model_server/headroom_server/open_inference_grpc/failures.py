"""Errors as status codes, and as messages of a stream that goes on. Pure."""

from __future__ import annotations

import grpc

from headroom_server.errors import RefusedError, RequestError
from headroom_server.open_inference_grpc import messages_pb2 as pb
from headroom_server.protocols.open_inference import MAX_ID_CHARACTERS

CODES = {
    400: grpc.StatusCode.INVALID_ARGUMENT,
    403: grpc.StatusCode.PERMISSION_DENIED,
    404: grpc.StatusCode.NOT_FOUND,
    408: grpc.StatusCode.DEADLINE_EXCEEDED,
    413: grpc.StatusCode.INVALID_ARGUMENT,
    415: grpc.StatusCode.INVALID_ARGUMENT,
    429: grpc.StatusCode.RESOURCE_EXHAUSTED,
    499: grpc.StatusCode.CANCELLED,
    500: grpc.StatusCode.INTERNAL,
    503: grpc.StatusCode.UNAVAILABLE,
    504: grpc.StatusCode.DEADLINE_EXCEEDED,
}
"""The gRPC code for the HTTP status of an error."""


def failure(model: str, identifier: str, error: RequestError) -> bytes:
    """Return the message that reports a request's error; the stream goes on.

    Names that are too long are cut: an answer must not be as large as what it refuses.
    """
    response = pb.ModelStreamInferResponse(error_message=error.message)
    response.infer_response.model_name = model[:MAX_ID_CHARACTERS]
    response.infer_response.id = identifier[:MAX_ID_CHARACTERS]
    parameters = response.infer_response.parameters
    parameters["status"].string_param = CODES[error.status].name
    parameters["triton_final_response"].bool_param = True
    if isinstance(error, RefusedError):
        parameters["retry_after_s"].int64_param = error.retry_after_s
    return response.SerializeToString()
