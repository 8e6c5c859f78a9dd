"""Builds a request from a model's metadata: ones for every input. Pure."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping
from typing import Any

from headroom.errors import Unmeasurable

_FLOATS = frozenset({"FP16", "FP32", "FP64", "BF16"})
_WHOLE = re.compile(r"U?INT(8|16|32|64)")


def synthetic_request(metadata: object) -> bytes:
    """Build a request of ones for a model's v2 metadata; free dimensions become 1.

    Raises Unmeasurable if an input cannot be synthesized.
    """
    inputs = metadata.get("inputs") if isinstance(metadata, Mapping) else None
    if not isinstance(inputs, list) or not inputs:
        raise Unmeasurable(
            f"the model's metadata must list its inputs; got {inputs!r:.80}: pass --body FILE"
        )
    return json.dumps({"inputs": [_synthetic_tensor(one) for one in inputs]}).encode()


def _synthetic_tensor(described: object) -> dict[str, Any]:
    match described:
        case {"name": str(name), "datatype": str(datatype), "shape": [*sizes]} if all(
            isinstance(size, int) for size in sizes
        ):
            shape = [size if size > 0 else 1 for size in sizes]
            return {
                "name": name,
                "datatype": datatype,
                "shape": shape,
                "data": [_one_of(datatype)] * math.prod(shape),
            }
    raise Unmeasurable(
        f"an input must have a name, a datatype and a shape; got {described!r:.80}: "
        "pass --body FILE"
    )


def _one_of(datatype: str) -> object:
    if datatype in _FLOATS:
        return 1.0
    if _WHOLE.fullmatch(datatype):
        return 1
    if datatype == "BOOL":
        return True
    if datatype == "BYTES":
        return "measure"
    raise Unmeasurable(f"inputs of type {datatype!r:.40} cannot be synthesized: pass --body FILE")
