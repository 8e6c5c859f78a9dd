"""The hot path: one request's bytes to its answer's, in either protocol over HTTP.

The edge calls it with the ASGI scope and no framework between, which would cost more than all that
is done here; FastAPI knows the same routes for its documentation.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, NamedTuple, NoReturn

from headroom_server.connection import connection_of
from headroom_server.errors import (
    DisconnectedError,
    EncodingError,
    InvalidRequestError,
    NotJsonError,
    TooLargeError,
)
from headroom_server.protocols import open_inference
from headroom_server.runtime.catalogue import Catalogue, Forms, Served
from headroom_server.scheduling.terms import parse_terms

if TYPE_CHECKING:
    from starlette.types import Receive, Scope

Header = tuple[bytes, bytes]

JSON = (b"content-type", b"application/json")
BYTES = (b"content-type", b"application/octet-stream")
HEAD_LENGTH = open_inference.HEAD_LENGTH.encode()


class Answer(NamedTuple):
    """A body and its headers; the status is 200."""

    body: bytes
    headers: list[Header]


Handler = Callable[[Served, "Scope", "Receive"], Awaitable[Answer]]


class Inference:
    """Finds the model that a path names, and answers."""

    def __init__(self, catalogue: Catalogue, max_body_bytes: int) -> None:
        self._catalogue = catalogue
        self._max_body_bytes = max_body_bytes

    async def answer(self, scope: Scope, receive: Receive) -> Answer | None:
        """The answer to an inference request; None where it is something else.

        Raises:
            RequestError: every way in which it can end otherwise.
        """
        path: str = scope["path"]
        if scope["method"] != "POST":
            return None
        served = None
        try:
            if path.endswith("/infer") and path.startswith("/v2/models/"):
                name, separator, version = path[11:-6].partition("/versions/")
                if "/" not in name and "/" not in version:
                    served = self._catalogue.find(name, version if separator else None)
                    return await self._infer(served, scope, receive)
            elif path.endswith(":predict") and path.startswith("/v1/models/"):
                name = path[11:-8]
                if "/" not in name:
                    served = self._catalogue.find(name, None)
                    return await self._predict(served, scope, receive)
        except InvalidRequestError as error:
            if served is not None:
                served.blame(error)
            raise
        return None

    async def _infer(self, served: Served, scope: Scope, receive: Receive) -> Answer:
        runner = served.runner
        arrived_s, headers = runner.clock(), dict(scope["headers"])
        body = await read_body(headers, receive, self._max_body_bytes)
        forms = _forms(served)
        head_bytes = headers.get(HEAD_LENGTH)
        try:
            asked = open_inference.parse(
                forms.contract, body, None if head_bytes is None else _head_bytes(head_bytes)
            )
        except NotJsonError as error:
            _explain(error, headers)
        terms = parse_terms(headers.items(), runner.limits.classes, deadline_s=asked.timeout_s)
        outputs = await runner.infer(
            asked.work, arrived_s=arrived_s, terms=terms, connection=connection_of(scope)
        )
        content, head = open_inference.render(served.name, served.version, asked, outputs)
        length = (b"content-length", b"%d" % len(content))
        if head is None:
            return Answer(content, [JSON, length])
        return Answer(content, [BYTES, length, (HEAD_LENGTH, b"%d" % head)])

    async def _predict(self, served: Served, scope: Scope, receive: Receive) -> Answer:
        runner = served.runner
        arrived_s, headers = runner.clock(), dict(scope["headers"])
        body = await read_body(headers, receive, self._max_body_bytes)
        forms = _forms(served)
        try:
            work = forms.typed.parse(body)
        except NotJsonError as error:
            _explain(error, headers)
        outputs = await runner.infer(
            work,
            arrived_s=arrived_s,
            terms=parse_terms(headers.items(), runner.limits.classes),
            connection=connection_of(scope),
        )
        content = forms.typed.render(work, outputs)
        return Answer(content, [JSON, (b"content-length", b"%d" % len(content))])


async def read_body(headers: dict[bytes, bytes], receive: Receive, limit: int) -> bytes:
    """The whole body.

    Raises:
        TooLargeError: as soon as it is known to hold more than `limit` bytes.
        DisconnectedError: where the client left before it was complete.
    """
    declared = int(headers.get(b"content-length", b"0"))
    if declared > limit:
        raise TooLargeError(f"the body holds at most {limit} bytes; got {declared}")
    message = await receive()
    body: bytes = message.get("body", b"")
    if message.get("more_body", False):
        chunks, size = [body], len(body)
        while message.get("more_body", False) and size <= limit:
            message = await receive()
            chunks.append(message.get("body", b""))
            size += len(chunks[-1])
        body = b"".join(chunks)
    if message["type"] == "http.disconnect":
        raise DisconnectedError
    if len(body) > limit:
        raise TooLargeError(f"the body holds at most {limit} bytes; got more")
    return body


def _forms(served: Served) -> Forms:
    forms = served.forms
    if forms is None:
        served.runner.refuse_unready()
    assert forms is not None
    return forms


def _head_bytes(value: bytes) -> int:
    if not value.isdigit() or len(value) > 12:
        raise InvalidRequestError(
            f"{HEAD_LENGTH.decode()}: a number of bytes; got {value.decode('latin-1')!r:.40}"
        )
    return int(value)


def _explain(error: NotJsonError, headers: dict[bytes, bytes]) -> NoReturn:
    encoding = headers.get(b"content-encoding", b"identity")
    if encoding.lower() != b"identity":
        raise EncodingError(
            f"content-encoding: none is served; got {encoding.decode('latin-1')!r:.40}"
        ) from error
    raise error
