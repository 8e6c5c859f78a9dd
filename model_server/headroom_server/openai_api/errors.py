"""Errors in the form of a path's protocol. Pure.

OpenAI's, with the name of the field: {"error": {"message": ..., "type": ..., "param": ...,
"code": ...}}. The Open Inference Protocol's, whose clients expect a string: {"error": ...}.
"""

from __future__ import annotations

from http import HTTPStatus
from typing import NamedTuple

import orjson

from headroom_server.errors import (
    ExpiredError,
    InvalidRequestError,
    NotJsonError,
    QueueFullError,
    RefusedError,
    RequestError,
    SlowRequestError,
    UnknownModelError,
)


class InvalidFieldError(InvalidRequestError):
    """A field of the body is wrong."""

    def __init__(self, field: str | None, message: str, code: str = "invalid_value") -> None:
        super().__init__(message)
        self.field = field
        self.code = code


class ContextLengthError(InvalidFieldError):
    """Prompt and answer do not fit the model's context."""

    reason = "context_length"

    def __init__(self, field: str, message: str) -> None:
        super().__init__(field, message, "context_length_exceeded")


class ErrorFields(NamedTuple):
    """Fields of an error object."""

    message: str
    type: str
    param: str | None
    code: str | None

    def encoded(self) -> bytes:
        """Return the error as JSON in OpenAI's form."""
        return orjson.dumps({"error": self._asdict()})

    def open_inference(self) -> bytes:
        """Return the error as JSON in the form of the Open Inference Protocol."""
        return orjson.dumps({"error": self.message})


def refusal(status: int, message: str) -> bytes:
    """Return the body of the response to a message that is no valid request."""
    error: RequestError = InvalidRequestError(message)
    if status == HTTPStatus.TOO_MANY_REQUESTS:
        error = QueueFullError(message, retry_after_s=1)
    elif status == HTTPStatus.SERVICE_UNAVAILABLE:
        error = RefusedError(message, retry_after_s=1)
    elif status == HTTPStatus.REQUEST_TIMEOUT:
        error = SlowRequestError(message)
    return fields_of(error).encoded()


def fields_of(error: RequestError) -> ErrorFields:
    """Return the error object of a failed request."""
    if isinstance(error, InvalidFieldError):
        return ErrorFields(error.message, "invalid_request_error", error.field, error.code)
    if isinstance(error, UnknownModelError):
        return ErrorFields(error.message, "invalid_request_error", "model", "model_not_found")
    if isinstance(error, NotJsonError):
        return ErrorFields(error.message, "invalid_request_error", None, "invalid_json")
    if isinstance(error, InvalidRequestError):
        return ErrorFields(error.message, "invalid_request_error", None, error.reason)
    if isinstance(error, RefusedError) and error.status == HTTPStatus.TOO_MANY_REQUESTS:
        return ErrorFields(error.message, "rate_limit_error", None, "rate_limit_exceeded")
    if isinstance(error, RefusedError):
        return ErrorFields(error.message, "server_error", None, "service_unavailable")
    if isinstance(error, ExpiredError):
        return ErrorFields(error.message, "server_error", None, "deadline_exceeded")
    return ErrorFields(error.message, "server_error", None, None)
