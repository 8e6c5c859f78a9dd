"""Inference over HTTP: from a request's bytes to its response, in both protocols.

Bypasses FastAPI, which would cost more CPU than the rest; FastAPI knows the same routes for the
documentation only.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache, partial
from typing import TYPE_CHECKING, NamedTuple

from headroom_server.connection import connection_of
from headroom_server.device.batches import Outputs
from headroom_server.engine import Work
from headroom_server.errors import InvalidRequestError
from headroom_server.protocols import open_inference
from headroom_server.protocols.request_options import RequestOptions, parse_request_options
from headroom_server.runtime.registry import Models
from headroom_server.runtime.served_model import ModelCodecs, ServedModel
from headroom_server.web.inference.parsing_turns import ParsingTurns
from headroom_server.web.inference.request_body import explain, read_body
from headroom_server.web.inference.response_heads import HEAD_LENGTH, Answer
from headroom_server.web.shared_bound import Reservation, SharedBound

if TYPE_CHECKING:
    from starlette.types import Receive, Scope


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
        except InvalidRequestError as error:
            explain(error, headers)
            raise


class Inference:
    """Finds the model of a path, and answers over ASGI."""

    def __init__(self, models: Models, max_body_bytes: int, receiving: SharedBound) -> None:
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
        reservation = Reservation(self.receiving, connection.client)
        try:
            limit = target.ready().bounds.limit(self.max_body_bytes)
            body = await read_body(headers, receive, limit, reservation)
            await self._turns.wait(len(body), connection.client)
            parsed = target.read(headers, body)
            del body  # its numbers wait without it
        except InvalidRequestError as error:
            target.served.count_invalid(error)
            raise
        finally:
            reservation.close()
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


def _head_bytes(value: bytes) -> int:
    if not value.isdigit() or len(value) > 12:
        raise InvalidRequestError(
            f"{HEAD_LENGTH.decode()} must be a number of bytes; got {value.decode('latin-1')!r:.40}"
        )
    return int(value)
