"""Request errors and their HTTP status codes.

Messages are safe for any client: they name the field and the rule, never a path, a stack or the
text of a foreign exception. Handlers raise these errors; `web.failures` renders them.
"""

from __future__ import annotations

import re

_PATH = re.compile(r"(?<![\w/])(?:file:/{2,})?/(?:[^\s/'\"<>()]+/)*([^\s/'\"<>():,;]+)")
_USER = re.compile(r"(?<=://)[^\s/@]*@")
_STACK = re.compile(r"Traceback \(most recent call last\)|\bFile \"")


def public(message: str) -> str:
    """Make a message that contains foreign text safe for clients.

    Removes stacks, the directories of paths, and the user and password of URLs.
    """
    return _PATH.sub(r"\1", _USER.sub("", _STACK.split(message, 1)[0])).strip()


class RequestError(Exception):
    """A request that gets an error response."""

    status = 500

    def __init__(self, message: str) -> None:
        super().__init__(message)
        self.message = message


class InvalidRequestError(RequestError):
    """A client error: it is not executed and is counted by `reason`."""

    status = 400
    reason = "invalid_input"
    counted = False
    """Whether it is already counted for the model that the request names."""


class NotJsonError(InvalidRequestError):
    """The body is not JSON."""

    reason = "not_json"


class TooLargeError(InvalidRequestError):
    """The body exceeds the server's size limit."""

    status = 413
    reason = "too_large"


class TooWideError(InvalidRequestError):
    """The request has more items than the largest batch."""

    status = 413
    reason = "too_wide"


class EncodingError(InvalidRequestError):
    """The body is compressed."""

    status = 415
    reason = "unsupported_encoding"


class UnknownModelError(InvalidRequestError):
    """The requested model or version is not served here."""

    status = 404
    reason = "unknown_model"


class ImpossibleDeadlineError(InvalidRequestError):
    """Its deadline is shorter than anything that this server ever computed.

    Neither load nor a miss: no number of replicas would serve it in time.
    """

    reason = "impossible_deadline"


class ConstraintError(InvalidRequestError):
    """The constraint of an accepted request allows no further token, or takes too much work.

    400 and not 500, and no miss: otherwise a client could make a healthy replica look broken.
    """

    reason = "constraint"
    counted = True
    """It has an outcome: it was accepted."""


class SlowRequestError(InvalidRequestError):
    """The request was not complete in time."""

    status = 408
    reason = "too_slow"


class RefusedError(RequestError):
    """A valid request that is not accepted. The client may retry after `retry_after_s` seconds."""

    status = 503

    def __init__(self, message: str, *, retry_after_s: int) -> None:
        super().__init__(message)
        self.retry_after_s = retry_after_s


class QueueFullError(RefusedError):
    """The queue is full. 429, so that no proxy ejects a healthy replica."""

    status = 429


class LateError(QueueFullError):
    """The answer is predicted to come after its deadline."""


class ExpiredError(RequestError):
    """The deadline passed while the request waited; it was not executed."""

    status = 504


class FailedError(RequestError):
    """The device could not answer an accepted request."""

    status = 500


class AbandonedError(RequestError):
    """An accepted request that was given up because the drain grace period ended."""

    status = 503


class DisconnectedError(RequestError):
    """The client disconnected before its response; this status is not sent."""

    status = 499

    def __init__(self) -> None:
        super().__init__("the client disconnected")
