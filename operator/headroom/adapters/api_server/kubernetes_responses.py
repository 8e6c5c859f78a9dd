"""Translates responses of the API server into objects or errors. Pure."""

from __future__ import annotations

import json
import re
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
    Unauthenticated,
    Unavailable,
)

Manifest = dict[str, Any]

_RETRY_AFTER_S = 1.0
_MAX_RETRY_AFTER_S = 60.0
_SHOWN = 1024
"""Kept length of the API server's messages, which end up in logs, events and status."""

_ERRORS: dict[int, type[ClusterError]] = {
    400: Rejected,
    401: Unauthenticated,
    403: Forbidden,
    404: NotFound,
    405: Rejected,
    409: Conflict,
    413: Rejected,
    415: Rejected,
    422: Rejected,
}

_INVALID = re.compile(
    "failed to create typed patch object|unable to convert unstructured object to"
)
"""Messages of a 500 to an apply whose body has a field of another type, or an unknown one.

A misspelt field and `memory: 16GB` in a pod template are answered so (Kubernetes 1.36).
"""
_VALUE = re.compile(", got .*", re.DOTALL)
"""The value of such a field, which may be a secret."""

_METADATA = re.compile(rb'\{(?:"(?:kind|apiVersion)":"[^"]*+",)*+"metadata":(\{[^{}]*+\})')
_FIRST_ITEM = re.compile(
    rb',"items":\[\{(?:"(?:kind|apiVersion)":"[^"]*+",)*+'
    rb'"metadata":\{((?:"\w++":"(?:[^"\\]++|\\.)*+",?)*+)'
)
"""The API server writes the texts of metadata first: name, namespace, UID, version."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Fetched:
    """A raw response of any status."""

    status: int
    body: bytes
    date: str
    """The Date header; empty if missing."""
    retry_after: str


def leave_out_managed_fields(one: object) -> None:
    """Remove managedFields, which are half of an object and not used."""
    metadata = one.get("metadata") if isinstance(one, dict) else None
    if isinstance(metadata, dict):
        metadata.pop("managedFields", None)


def start_of_list(start: bytes) -> Manifest | None:
    """Return the metadata of a list whose items are too large to be read; None if that fails.

    The API server writes them first, so that a list goes on behind such an item.
    """
    found = _METADATA.match(start)
    try:
        metadata = orjson.loads(found[1]) if found else None
    except orjson.JSONDecodeError:
        return None
    return metadata if isinstance(metadata, dict) else None


def first_of_list(start: bytes) -> Manifest:
    """Return an object that names the first one of a list of metadata; without name if unknown."""
    listed = _METADATA.match(start)
    found = _FIRST_ITEM.match(start, listed.end()) if listed else None
    try:
        metadata = orjson.loads(b"{%b}" % found[1].rstrip(b",")) if found else {}
    except orjson.JSONDecodeError:
        metadata = {}
    names = ("name", "namespace", "uid")
    return {"metadata": {name: metadata[name] for name in names if name in metadata}}


def items_of(answer: Manifest, path: str) -> list[Manifest]:
    """Return the objects of a list; raise Unavailable if it is not a list."""
    items = answer.get("items")
    items = [] if items is None else items
    if not isinstance(items, list) or not all(isinstance(one, dict) for one in items):
        raise Unavailable(f"GET {path}: the response is not a list of objects")
    return items


def check_status(found: Fetched, asked: str) -> None:
    """Raise the error of a response's status, if it is one."""
    if found.status >= 300:
        raise error_of(found.status, found.body, found.retry_after, asked)


def object_of(found: Fetched, asked: str) -> Manifest:
    """Return the object of a response; raise the error of its status."""
    check_status(found, asked)
    try:
        answer = _decoded(found.body)
    except (ValueError, RecursionError) as error:
        raise Unavailable(f"{asked}: the response is not JSON: {error}") from error
    if not isinstance(answer, dict):
        raise Unavailable(f"{asked}: the response is not an object")
    return answer


def _decoded(body: bytes) -> Any:
    """Decode JSON, also below the depth at which orjson ends (1024).

    The API server stores 10 000 levels where a schema preserves unknown fields, as in a
    `podTemplate`; one such object must not make the list of all unreadable.
    """
    try:
        return orjson.loads(body)
    except orjson.JSONDecodeError:
        return json.loads(body)


def error_of(
    status: int, payload: bytes, retry_after: str, asked: str, known: Sequence[str] = ()
) -> ClusterError:
    """Translate an error response, with the API server's message if it has one.

    `known` are secrets that the message may repeat.
    """
    try:
        message = redacted(str(orjson.loads(payload)["message"]), known)[:_SHOWN]
    except (orjson.JSONDecodeError, KeyError, TypeError):
        message = redacted(payload[:4096].decode("utf-8", "replace"), known)[:200].strip()
    words = f"{message} ({status})" if message else f"{asked} returned status {status}"
    if status == 403 and b'"NamespaceTerminating"' in payload:
        return NamespaceTerminating(words)
    if status == 500 and _INVALID.search(message):
        return Rejected(_VALUE.sub("; got another type", words))
    kind = _ERRORS.get(status)
    if kind is not None:
        return kind(words)
    asked_s = float(retry_after) if retry_after.isdecimal() else _RETRY_AFTER_S
    return Unavailable(words, retry_after_s=min(asked_s, _MAX_RETRY_AFTER_S))
