"""The warm-up request: the service's own, or the one that its profile defines. Pure.

A server with the Open Inference Protocol is queried for its model's inputs, and gets ones in their
shape, with 1 for each free dimension.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

from headroom.api import InferenceService

MOST_ELEMENTS = 1 << 20
_INSTEAD = "give warmup.request"
_WHOLE = frozenset({"INT8", "INT16", "INT32", "INT64", "UINT8", "UINT16", "UINT32", "UINT64"})
_ONES: Mapping[str, Any] = {"BOOL": True, "BYTES": "1", "FP32": 1.0, "FP64": 1.0} | dict.fromkeys(
    _WHOLE, 1
)
"""By datatype, as JSON carries it; it carries no FP16 and BF16."""


class UnknownRequest(Exception):  # noqa: N818  (what is missing)
    """No request follows from the server's metadata; the message says what to do."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WarmupRequest:
    """A warm-up request, sent by POST."""

    path: str
    body: str
    content_type: str = "application/json"


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
            named = json.loads(metadata)["inputs"]
            inputs = [_ones(one) for one in named]
        except (ValueError, KeyError, TypeError) as error:
            raise UnknownRequest(
                f"{self.path} says no inputs of the model ({type(error).__name__}): {_INSTEAD}"
            ) from error
        if not inputs:
            raise UnknownRequest(f"{self.path} names no inputs of the model: {_INSTEAD}")
        return WarmupRequest(path=self.then, body=json.dumps({"inputs": inputs}))


def request_of(service: InferenceService) -> WarmupRequest | Inputs | None:
    """Return what to send to pods of a service; None: nothing, the server warms itself."""
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


def _ones(described: Mapping[str, Any]) -> dict[str, Any]:
    """Return one input in the protocol's form."""
    name, datatype = str(described["name"]), str(described["datatype"])
    shape = [max(1, int(size)) for size in described["shape"]]
    count = math.prod(shape)
    if datatype not in _ONES:
        raise UnknownRequest(f"input {name} is {datatype}, which JSON does not carry: {_INSTEAD}")
    if count > MOST_ELEMENTS:
        raise UnknownRequest(
            f"input {name} has {count} elements of at most {MOST_ELEMENTS}: {_INSTEAD}"
        )
    return {"name": name, "datatype": datatype, "shape": shape, "data": [_ONES[datatype]] * count}
