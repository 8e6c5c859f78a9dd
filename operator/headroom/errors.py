"""Errors of outside systems, classified by what the caller does next.

Adapters translate the errors of their client libraries into these, and no library error leaves an
adapter.
"""

# ruff: noqa: N818  (named by what the caller does next)

from __future__ import annotations


class ClusterError(Exception):
    """The Kubernetes API rejected or failed a request; the message has its reason."""


class Conflict(ClusterError):
    """The object changed concurrently (409): read and decide again, never repeat the write."""


class NotFound(ClusterError):
    """The object does not exist (404)."""


class UnknownKind(NotFound):
    """The API server has no such kind: a name of a kind or its apiVersion must change."""


class Rejected(ClusterError):
    """The object is invalid (400, 413, 415, 422): the spec must change."""


class Forbidden(ClusterError):
    """Credentials, RBAC, quota or policy forbid it (401, 403): an administrator must allow it."""


class Unauthenticated(Forbidden):
    """The API server does not accept the credentials (401): they must be renewed."""


class NamespaceTerminating(Forbidden):
    """The namespace is being deleted and accepts no new objects (403 with this cause)."""


class Unavailable(ClusterError):
    """The API cannot answer now (429, 5xx, timeout, connection): retry after a pause."""

    def __init__(self, message: str, retry_after_s: float = 0.0) -> None:
        super().__init__(message)
        self.retry_after_s = retry_after_s
        """The server's Retry-After; 0 if it gave none."""


class AnswerTooLarge(Unavailable):
    """The answer has more bytes than are read: ask for fewer objects."""

    def __init__(self, message: str, start: bytes = b"") -> None:
        super().__init__(message)
        self.start = start
        """The first bytes of the answer."""


class NotLeading(Unavailable):
    """No write is allowed now: another process may lead; the decision is dropped."""


class ScrapeFailed(Exception):
    """A pod returned no page of metrics: the sample is missing, not zero."""


class PageTooLarge(ScrapeFailed):
    """A page has more bytes than there was room for."""


class Unmeasurable(Exception):
    """A live server cannot be measured as requested; the message says what to change."""


class RequestFailed(Exception):
    """A pod did not answer a request: refused, disconnected, or timed out."""
