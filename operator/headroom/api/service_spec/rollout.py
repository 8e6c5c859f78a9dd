"""`spec.rollout`: how many replicas a change of the pod template starts and stops at a time."""

from __future__ import annotations

import re
from typing import Annotated

from pydantic import PlainValidator, WithJsonSchema
from pydantic_core import PydanticCustomError

from headroom.api.values import VALIDATIONS, Rule, Value

MOST = 1000
_PERCENT = r"^(100|[1-9]?[0-9])%$"
_A_SHARE = f"must be a number from 0 to {MOST}, or a share of the replicas from 0% to 100%"


def _share(value: object) -> int | str:
    match value:
        case bool():
            pass
        case int() if 0 <= value <= MOST:
            return value
        case str() if re.fullmatch(_PERCENT, value):
            return value
    raise PydanticCustomError("share", _A_SHARE)


Share = Annotated[
    int | str,
    PlainValidator(_share),
    WithJsonSchema(
        {
            "x-kubernetes-int-or-string": True,
            "minimum": 0,
            "maximum": MOST,
            "maxLength": 4,
            VALIDATIONS: [
                {
                    "rule": f"type(self) == int || self.matches('{_PERCENT}')",
                    "message": _A_SHARE,
                }
            ],
        }
    ),
]
"""Replicas, as a number or as a share of all, as in a Deployment."""

_ZEROS = (0, "0%")


class Rollout(Value):
    """Replacement of the replicas after a change of their pod template."""

    max_surge: Share | None = None
    """Replicas that are started beyond the requested ones, before others are stopped. Each needs
    free accelerators; once this or maxUnavailable is set, a rollout waits for them. Default: 1,
    and 0 where replicas hold accelerators and maxUnavailable is above 0."""
    max_unavailable: Share | None = None
    """Replicas that may be missing during a rollout. Default: 1 where maxSurge is 0, else 0."""

    rules = (
        Rule(
            field="maxUnavailable",
            cel="!has(self.maxSurge) || !has(self.maxUnavailable) || "
            "[self.maxSurge, self.maxUnavailable].exists(s, string(s) != '0' && string(s) != '0%')",
            holds=lambda rollout: (
                not (rollout.max_surge in _ZEROS and rollout.max_unavailable in _ZEROS)
            ),
            message="rollout.maxSurge and rollout.maxUnavailable must not both be 0, because "
            "nothing could be replaced",
        ),
    )

    def bounds(self, *, in_place: bool) -> tuple[int | str, int | str]:
        """Return maxSurge and maxUnavailable; `in_place` where a surge may find no accelerator."""
        surge, unavailable = self.max_surge, self.max_unavailable
        if surge is None:
            surge = 0 if in_place and unavailable not in (None, *_ZEROS) else 1
        if unavailable is None:
            unavailable = 1 if surge in _ZEROS else 0
        return surge, unavailable
