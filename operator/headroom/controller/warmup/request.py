"""The warm-up request: the service's own, or the one that its profile defines. Pure.

A server with the Open Inference Protocol is queried for its model's inputs, and gets ones in their
shape, with 1 for each free dimension.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from urllib.parse import quote

from headroom.api import InferenceService
from headroom.profiles.open_inference import RepeatedText, UnusableMetadata, request_of_ones

_KEPT_BYTES = 4096
_INSTEAD = "give warmup.request"


class UnknownRequest(Exception):  # noqa: N818  (what is missing)
    """No request follows from the server's metadata; the message names the next step."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WarmupRequest:
    """A warm-up request, sent by POST."""

    path: str
    body: str | RepeatedText
    """Pieces where it is made of metadata."""
    content_type: str = "application/json"

    @property
    def is_small(self) -> bool:
        """Whether it may be kept for each pod; else the metadata is read again each time."""
        return isinstance(self.body, str) or self.body.kept_bytes <= _KEPT_BYTES


@dataclass(frozen=True, slots=True, kw_only=True)
class Inputs:
    """Read the model's inputs first, at a path of the same server."""

    path: str
    then: str
    """The path of the request."""

    def request(self, metadata: str) -> WarmupRequest:
        """Make the request from the server's model metadata.

        Raises:
            UnknownRequest: if no request can be derived from it.
        """
        try:
            body = request_of_ones(json.loads(metadata))
        except UnusableMetadata as error:
            raise UnknownRequest(f"{self.path}: {error}: {_INSTEAD}") from error
        except (ValueError, RecursionError) as error:
            raise UnknownRequest(
                f"{self.path} must answer with JSON; got {type(error).__name__}: {_INSTEAD}"
            ) from error
        return WarmupRequest(path=self.then, body=body)


def request_of(service: InferenceService) -> WarmupRequest | Inputs | None:
    """Return the request for pods of a service; None: the server warms itself."""
    warmup = service.spec.warmup
    if not warmup.by_operator:
        return None
    if warmup.request is not None:
        given = warmup.request
        return WarmupRequest(path=given.path, body=given.body, content_type=given.content_type)
    call = service.spec.runtime.server.warmup
    if call is None:
        return None  # refused by the schema
    model = quote(service.model_name, safe="")
    path = call.path.replace("{model}", model)
    if call.inputs_path:
        return Inputs(path=call.inputs_path.replace("{model}", model), then=path)
    body = dict(call.body)
    if call.takes_model and service.spec.model.name:
        body["model"] = service.spec.model.name
    return WarmupRequest(path=path, body=json.dumps(body))
