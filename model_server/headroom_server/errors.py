"""What can go wrong with a request, and the HTTP status that each kind has.

Messages are safe to show to any client: they name the field and the rule, never a path, a stack or
a foreign exception's text. Handlers raise these; one renderer turns them into answers.
"""

from __future__ import annotations

import re

_PATH = re.compile(r"(?<![\w/])(?:file:/{2,})?/(?:[^\s/'\"<>()]+/)*([^\s/'\"<>():,;]+)")
_USER = re.compile(r"(?<=://)[^\s/@]*@")
_STACK = re.compile(r"Traceback \(most recent call last\)|\bFile \"")


def public(message: str) -> str:
    """What a client may read of a message that holds the words of others.

    No stack, of a path only its last name, and no user or password of a URL.
    """
    return _PATH.sub(r"\1", _USER.sub("", _STACK.split(message, 1)[0])).strip()


class RequestError(Exception):
    """A request that gets an error for an answer."""

    status = 500

    def __init__(self, message: str) -> None:
        super().__init__(message)
        self.message = message


class InvalidRequestError(RequestError):
    """The client's mistake: it costs no batch and is counted by `reason`."""

    status = 400
    reason = "invalid_input"
    blamed = False
    """Whether it stands in a model's accounts: it was known which one was asked for."""


class NotJsonError(InvalidRequestError):
    """The body is not JSON."""

    reason = "not_json"


class TooLargeError(InvalidRequestError):
    """The body holds more bytes than the server takes."""

    status = 413
    reason = "too_large"


class TooWideError(InvalidRequestError):
    """One request holds more items than the largest batch."""

    status = 413
    reason = "too_wide"


class EncodingError(InvalidRequestError):
    """The body is compressed."""

    status = 415
    reason = "unsupported_encoding"


class UnknownModelError(InvalidRequestError):
    """Another model than the one that is served here."""

    status = 404
    reason = "unknown_model"


class RefusedError(RequestError):
    """Well-formed, and not accepted. The client may come back after `retry_after_s` seconds."""

    status = 503

    def __init__(self, message: str, *, retry_after_s: int) -> None:
        super().__init__(message)
        self.retry_after_s = retry_after_s


class QueueFullError(RefusedError):
    """More would wait than the queue may hold. 429, so that no proxy ejects a healthy replica."""

    status = 429


class ExpiredError(RequestError):
    """The deadline passed while the request waited; it was not executed."""

    status = 504


class FailedError(RequestError):
    """The device could not answer an accepted request."""

    status = 500


class AbandonedError(RequestError):
    """An accepted request that the server had to give up because its drain grace ended."""

    status = 503


class DisconnectedError(RequestError):
    """The client left before its answer; nobody reads this status."""

    status = 499

    def __init__(self) -> None:
        super().__init__("the client left")
