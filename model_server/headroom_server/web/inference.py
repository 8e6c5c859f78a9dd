"""Inference over HTTP: from a request's bytes to its response, in both protocols.

Bypasses FastAPI, which would cost more CPU than the rest; FastAPI knows the same routes for the
documentation only.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache, partial
from typing import TYPE_CHECKING, NamedTuple, NoReturn

from uvicorn.protocols.http.httptools_impl import STATUS_LINE

from headroom_server.connection import Headers, connection_of
from headroom_server.device.execution import Outputs
from headroom_server.engine import Work
from headroom_server.errors import (
    DisconnectedError,
    EncodingError,
    InvalidRequestError,
    NotJsonError,
    TooLargeError,
)
from headroom_server.protocols import open_inference
from headroom_server.runtime.registry import Models
from headroom_server.runtime.served_model import ModelCodecs, ServedModel
from headroom_server.scheduling.request_options import RequestOptions, parse_request_options
from headroom_server.web.parsing_turns import ParsingTurns
from headroom_server.web.receiving import Receipt, Shares

if TYPE_CHECKING:
    from starlette.types import Receive, Scope

Header = tuple[bytes, bytes]

JSON = (b"content-type", b"application/json")
BYTES = (b"content-type", b"application/octet-stream")
HEAD_LENGTH = open_inference.HEAD_LENGTH.encode()
CLOSE_LINE = b"connection: close\r\n"
JSON_HEAD = STATUS_LINE[200] + b"content-type: application/json\r\ncontent-length: %d\r\n"
"""Head of a 200 response with a JSON body of this many bytes, without the final empty line."""


def head_of(status: int, headers: Headers) -> bytes:
    """Return a response's head as bytes, without the final empty line."""
    parts = [STATUS_LINE[status]]
    for name, value in headers:
        parts += (name, b": ", value, b"\r\n")
    return b"".join(parts)


class Answer(NamedTuple):
    """A body; the status is 200."""

    body: bytes
    json_bytes: int | None = None
    """Bytes of JSON, if tensors follow; None: all."""

    @property
    def headers(self) -> list[Header]:
        """The headers for ASGI."""
        length = (b"content-length", b"%d" % len(self.body))
        if self.json_bytes is None:
            return [JSON, length]
        return [BYTES, length, (HEAD_LENGTH, b"%d" % self.json_bytes)]

    @property
    def head(self) -> bytes:
        """The head for the wire."""
        if self.json_bytes is None:
            return JSON_HEAD % len(self.body)
        return head_of(200, self.headers)


class ParsedRequest(NamedTuple):
    """A parsed request: its work, its options, and how to render its response."""

    work: Work
    options: RequestOptions
    render: Callable[[Outputs], Answer]


class ModelRef(NamedTuple):
    """The model that an inference path names."""

    model: str
    version: str | None
    typed: bool


@lru_cache(maxsize=64)
def parse_model_path(path: str) -> ModelRef | None:
    """Return None if the path is not for inference. Clients repeat the same few paths."""
    if path.endswith("/infer") and path.startswith("/v2/models/"):
        name, separator, version = path[11:-6].partition("/versions/")
        if "/" not in name and "/" not in version:
            return ModelRef(name, version if separator else None, False)
    elif path.endswith(":predict") and path.startswith("/v1/models/"):
        name = path[11:-8]
        if "/" not in name:
            return ModelRef(name, None, True)
    return None


class Target(NamedTuple):
    """The target of an inference request."""

    served: ServedModel
    typed: bool
    """Typed JSON; else the Open Inference Protocol."""

    def ready(self) -> ModelCodecs:
        """Return the model's encodings.

        Raises:
            RefusedError: the model is not loaded; already counted.
        """
        codecs = self.served.codecs
        if codecs is None:
            self.served.runner.refuse_unready()
        assert codecs is not None
        return codecs

    def read(self, headers: dict[bytes, bytes], body: bytes) -> ParsedRequest:
        """Parse a request; its headers are in lower case.

        Raises:
            InvalidRequestError: invalid input.
            RefusedError: the model is not loaded; already counted.
        """
        codecs = self.ready()
        try:
            return (_read_typed if self.typed else _read_tensors)(
                self.served, codecs, headers, body
            )
        except NotJsonError as error:
            _explain(error, headers)


class Inference:
    """Finds the model of a path, and answers over ASGI."""

    def __init__(self, models: Models, max_body_bytes: int, receiving: Shares) -> None:
        self._models = models
        self.max_body_bytes = max_body_bytes
        self.receiving = receiving
        self._turns = ParsingTurns()

    def find(self, path: str) -> Target | None:
        """Return a path's target; None if the path is not for inference.

        Raises:
            UnknownModelError: with the models that are served here.
        """
        named = parse_model_path(path)
        if named is None:
            return None
        name, version, typed = named
        return Target(self._models.find(name, version), typed)

    async def answer(self, scope: Scope, receive: Receive) -> Answer | None:
        """Return the response to an inference request; None if it is another request.

        Raises:
            RequestError: in every other case.
        """
        target = self.find(scope["path"]) if scope["method"] == "POST" else None
        if target is None:
            return None
        runner = target.served.runner
        arrived_s, headers = runner.clock(), dict(scope["headers"])
        connection = connection_of(scope)
        receipt = Receipt(self.receiving, connection.client)
        try:
            limit = target.ready().bounds.limit(self.max_body_bytes)
            body = await read_body(headers, receive, limit, receipt)
            await self._turns.wait(len(body), connection.client)
            parsed = target.read(headers, body)
            del body  # its numbers wait without it
        except InvalidRequestError as error:
            target.served.blame(error)
            raise
        finally:
            receipt.close()
        outputs = await runner.infer(
            parsed.work, arrived_s=arrived_s, options=parsed.options, connection=connection
        )
        return parsed.render(outputs)


def _read_tensors(
    served: ServedModel, codecs: ModelCodecs, headers: dict[bytes, bytes], body: bytes
) -> ParsedRequest:
    sent = headers.get(HEAD_LENGTH)
    head_bytes = None if sent is None else _head_bytes(sent)
    codecs.bounds.check(body, head_bytes)
    parsed = open_inference.parse(codecs.contract, body, head_bytes)
    classes = served.runner.limits.classes
    options = parse_request_options(headers, classes, deadline_s=parsed.timeout_s)
    return ParsedRequest(parsed.work, options, partial(_write_tensors, served, parsed))


def _write_tensors(
    served: ServedModel, parsed: open_inference.Inference, outputs: Outputs
) -> Answer:
    return Answer(*open_inference.render(served.name, served.version, parsed, outputs))


def _read_typed(
    served: ServedModel, codecs: ModelCodecs, headers: dict[bytes, bytes], body: bytes
) -> ParsedRequest:
    codecs.bounds.check(body)
    work = codecs.typed.parse(body)
    options = parse_request_options(headers, served.runner.limits.classes)
    return ParsedRequest(work, options, partial(_write_typed, codecs, work))


def _write_typed(codecs: ModelCodecs, work: Work, outputs: Outputs) -> Answer:
    return Answer(codecs.typed.render(work, outputs))


async def read_body(
    headers: dict[bytes, bytes], receive: Receive, limit: int, receipt: Receipt | None = None
) -> bytes:
    """Read the whole body.

    Raises:
        QueueFullError: more than the receipt grants; checked by the declared length at first.
        TooLargeError: as soon as it exceeds `limit` bytes.
        DisconnectedError: the client disconnected before it was complete.
    """
    declared = int(headers.get(b"content-length", b"0"))
    if declared > limit:
        raise TooLargeError(f"the body must have at most {limit} bytes; got {declared}")
    if receipt is not None:
        receipt.check(declared)
    message = await receive()
    body: bytes = message.get("body", b"")
    if message.get("more_body", False):
        # one array: a list of small chunks takes 40 bytes more for each
        whole = bytearray()
        while True:
            chunk = message.get("body", b"")
            if receipt is not None:
                receipt.grow(len(chunk))
            whole += chunk
            if not message.get("more_body", False) or len(whole) > limit:
                break
            message = await receive()
        body = bytes(whole)
    if message["type"] == "http.disconnect":
        raise DisconnectedError
    if len(body) > limit:
        raise TooLargeError(f"the body must have at most {limit} bytes; got more")
    return body


def _head_bytes(value: bytes) -> int:
    if not value.isdigit() or len(value) > 12:
        raise InvalidRequestError(
            f"{HEAD_LENGTH.decode()} must be a number of bytes; got {value.decode('latin-1')!r:.40}"
        )
    return int(value)


def _explain(error: NotJsonError, headers: dict[bytes, bytes]) -> NoReturn:
    encoding = headers.get(b"content-encoding", b"identity")
    if encoding.lower() != b"identity":
        raise EncodingError(
            f"content-encoding must be identity; got {encoding.decode('latin-1')!r:.40}"
        ) from error
    raise error
