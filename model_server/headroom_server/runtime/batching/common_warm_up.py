"""The warm-up of a model from those of its devices, and the times that it took. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain

from headroom_server.device.startup import Warm


def common_warm_up(all_warm: Sequence[Warm]) -> Warm | None:
    """Return the results of all devices as one; None if their inputs or outputs differ.

    A shape's first execution is that of the slowest device.
    """
    first = all_warm[0]
    if any(warm.signature != first.signature for warm in all_warm):
        return None
    shapes = [
        same[0]._replace(
            first_s=max(one.first_s for one in same),
            later=tuple(chain.from_iterable(one.later for one in same)),
        )
        for same in zip(*(warm.shapes for warm in all_warm), strict=True)
    ]
    return first._replace(shapes=shapes)


def timings_of(warm: Warm) -> Sequence[tuple[int, float, int]]:
    """Return items, seconds and padded length of each timed execution."""
    return [
        (shape.items, stages.total_s, shape.length)
        for shape in warm.shapes
        for stages in shape.later
    ]
