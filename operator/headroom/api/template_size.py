"""Bounds the pod template of a stored spec, of which a tenant chooses the size. Pure.

Its schema is open. An object of 1.2 MB may be 400 000 values, which take the event loop 0.6 s to
look at, and as long again with what is made of them: who changed it twice a second had all of the
loop. Usual templates have 50 values; the schema bounds all other parts of a spec.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

MOST_VALUES = 2048
LEFT_OUT: Mapping[str, str] = {"": "more values than are read"}
"""Stands for a larger template: the object is refused where it is used, and the refusal says
why."""


def is_small(template: object) -> bool:
    """Return whether a template has at most this many values; no more are counted."""
    left, inside = MOST_VALUES, [template]
    while inside:
        one = inside.pop()
        more = one.values() if isinstance(one, dict) else one if isinstance(one, list) else ()
        left -= 1
        if left < len(inside) + len(more):
            return False
        inside += more
    return template != LEFT_OUT


def without_large_template(spec: Any) -> Any:
    """Return a spec as it is stored; a template that is too large is left out of it."""
    runtime = spec.get("runtime") if isinstance(spec, dict) else None
    if not isinstance(runtime, dict) or is_small(runtime.get("podTemplate")):
        return spec
    return {**spec, "runtime": {**runtime, "podTemplate": LEFT_OUT}}
