"""What can go wrong at the edges, told apart by what the caller does next.

Adapters translate the errors of their libraries into these; nothing else about a library passes an
adapter.
"""

# ruff: noqa: N818  (named by what the caller does next)

from __future__ import annotations


class ClusterError(Exception):
    """The Kubernetes API did not do what was asked; the message says why, in its words."""


class Conflict(ClusterError):
    """Someone else was faster (409): read again and decide again, never repeat the write."""


class NotFound(ClusterError):
    """The object is not there (404): what is gone needs no write."""


class Rejected(ClusterError):
    """The object is not acceptable as it is (400, 413, 415, 422): the spec has to change."""


class Forbidden(ClusterError):
    """Credentials, RBAC, quota or policy forbid it (401, 403): someone has to permit it."""


class NamespaceTerminating(Forbidden):
    """The namespace is being deleted, and takes nothing new (403 with this cause)."""


class Unavailable(ClusterError):
    """The API cannot answer now (429, 5xx, timeout, connection): the same later, after a pause."""

    def __init__(self, message: str, retry_after_s: float = 0.0) -> None:
        super().__init__(message)
        self.retry_after_s = retry_after_s
        """How long the server asked to be left alone; 0 where it did not say."""


class NotLeading(Unavailable):
    """No write is allowed now: another process may lead, and what was decided is dropped."""


class ScrapeFailed(Exception):
    """A pod gave no page of metrics: this scrape has no sample, which is not a sample of zeros."""


class Unmeasurable(Exception):
    """A live server cannot be measured as it was asked for; the message says what to change."""


class RequestFailed(Exception):
    """A pod gave no answer to a request: refused, broken off, or not in time."""
