"""PURE. What an answer of the API server stands for: an object, or an error by what to do next."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import orjson

from headroom.adapters.redaction import redacted
from headroom.errors import (
    ClusterError,
    Conflict,
    Forbidden,
    NamespaceTerminating,
    NotFound,
    Rejected,
    Unavailable,
)

Manifest = dict[str, Any]

_RETRY_AFTER_S = 1.0
_MAX_RETRY_AFTER_S = 60.0
_SHOWN = 1024
"""Of what the API server says: it ends in logs, events and status."""

_ERRORS: dict[int, type[ClusterError]] = {
    400: Rejected,
    401: Forbidden,
    403: Forbidden,
    404: NotFound,
    405: Rejected,
    409: Conflict,
    413: Rejected,
    415: Rejected,
    422: Rejected,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Fetched:
    """An answer as it came, whatever its status."""

    status: int
    body: bytes
    date: str
    """When the server says that it answered, as HTTP writes it; empty where it does not."""
    retry_after: str


def leave_out_managed_fields(one: object) -> None:
    """Take out of an object what is half of it, and read by nobody."""
    metadata = one.get("metadata") if isinstance(one, dict) else None
    if isinstance(metadata, dict):
        metadata.pop("managedFields", None)


def items_of(answer: Manifest, path: str) -> list[Manifest]:
    """Read the objects of a list; raise Unavailable where it is none."""
    items = answer.get("items", ())
    if items is not None and not isinstance(items, list):
        raise Unavailable(f"GET {path}: the answer is no list of objects")
    return items or []


def object_of(found: Fetched, asked: str) -> Manifest:
    """Read the object of an answer; raise what an answer of its status stands for."""
    if found.status >= 300:
        raise error_of(found.status, found.body, found.retry_after, asked)
    try:
        answer = orjson.loads(found.body)
    except orjson.JSONDecodeError as error:
        raise Unavailable(f"{asked}: the answer is no JSON: {error}") from error
    if not isinstance(answer, dict):
        raise Unavailable(f"{asked}: the answer is no object")
    return answer


def error_of(
    status: int, payload: bytes, retry_after: str, asked: str, known: Sequence[str] = ()
) -> ClusterError:
    """Translate an answer, in the API server's words where it gave any.

    `known` are secrets that it may repeat.
    """
    try:
        message = redacted(str(orjson.loads(payload)["message"]), known)[:_SHOWN]
    except (orjson.JSONDecodeError, KeyError, TypeError):
        message = redacted(payload[:4096].decode("utf-8", "replace"), known)[:200].strip()
    words = f"{message} ({status})" if message else f"{asked} gave {status}"
    if status == 403 and b'"NamespaceTerminating"' in payload:
        return NamespaceTerminating(words)
    kind = _ERRORS.get(status)
    if kind is not None:
        return kind(words)
    asked_s = float(retry_after) if retry_after.isdecimal() else _RETRY_AFTER_S
    return Unavailable(words, retry_after_s=min(asked_s, _MAX_RETRY_AFTER_S))
