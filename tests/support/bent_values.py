"""Strategies that bend valid requests: values of any kind, and mangled bytes."""

from __future__ import annotations

from typing import Any

import orjson
from hypothesis import strategies as st

LEAVES = (
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**64 - 1)
    | st.floats()
    | st.text(max_size=4)
    | st.sampled_from([-1, 0, 2**31, "x", "FP32", 1e39, "\0"])
    | st.builds(list)
    | st.builds(dict)
    | st.builds(lambda: [[], 1])
)


@st.composite
def bent(draw: st.DrawFn, value: Any, leaves: st.SearchStrategy[Any] = LEAVES) -> Any:
    """A copy with up to three places replaced, dropped, doubled or moved."""
    copy = orjson.loads(orjson.dumps(value))
    for _ in range(draw(st.integers(0, 3))):
        node = copy
        while True:
            keys = [*node] if isinstance(node, dict) else [*range(len(node))]
            if not keys:
                break
            key = draw(st.sampled_from(keys))
            if isinstance(node[key], dict | list) and node[key] and draw(st.booleans()):
                node = node[key]
                continue
            how = draw(st.integers(0, 2))
            if how == 0:
                node[key] = draw(leaves)
            elif how == 1:
                del node[key]
            elif isinstance(node, list):
                node.append(node[key])
            else:
                node[draw(st.sampled_from(["data", "shape", "parameters", "é"]))] = node[key]
            break
    return copy


@st.composite
def mangled(draw: st.DrawFn, raw: bytes) -> bytes:
    """A copy with some bytes changed, dropped, doubled or put in between."""
    copy = bytearray(raw)
    for _ in range(draw(st.integers(0, 4))):
        at = draw(st.integers(0, len(copy)))
        width = draw(st.integers(0, 8))
        copy[at : at + width] = draw(
            st.binary(max_size=8) | st.just(bytes(copy[:at])) | st.just(b"\r\n")
        )
    return bytes(copy)
