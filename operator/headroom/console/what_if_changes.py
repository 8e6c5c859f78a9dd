"""Changes of a what-if question: values from a form, applied to a policy. Pure."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace

from headroom.api.durations import Duration
from headroom.scaling import Policy
from headroom.scaling.values.tokens import Target, TokenTargets

PERCENTILES = (90, 95, 99)


@dataclass(frozen=True, slots=True, kw_only=True)
class Changes:
    """The values to change; None keeps the present one."""

    target_s: float | None = None
    percentile: int | None = None
    ceiling: float | None = None
    min_replicas: int | None = None
    max_replicas: int | None = None
    first_token_s: float | None = None
    output_token_s: float | None = None

    def applied(self, policy: Policy) -> Policy:
        """Return the changed policy.

        Raises ValueError if minReplicas exceeds maxReplicas, or for a promise that is not there.
        """
        changed = replace(
            policy,
            latency_target_s=self.target_s or policy.latency_target_s,
            latency_percentile=(
                policy.latency_percentile if self.percentile is None else self.percentile / 100
            ),
            utilization_ceiling=self.ceiling or policy.utilization_ceiling,
            min_replicas=self.min_replicas or policy.min_replicas,
            max_replicas=self.max_replicas or policy.max_replicas,
            token_targets=self._token_targets(policy.token_targets),
        )
        if changed.min_replicas > changed.max_replicas:
            raise ValueError(
                f"minReplicas must be at most maxReplicas; got {changed.min_replicas} "
                f"and {changed.max_replicas}"
            )
        return changed

    def _token_targets(self, present: TokenTargets | None) -> TokenTargets | None:
        changed = present or TokenTargets()
        for name, seconds, field in (
            ("first_token", self.first_token_s, "timeToFirstToken"),
            ("output_token", self.output_token_s, "timePerOutputToken"),
        ):
            if seconds is None:
                continue
            target: Target | None = getattr(changed, name)
            if target is None:
                raise ValueError(f"{name}: the service has no slo.{field} to change")
            changed = replace(changed, **{name: replace(target, seconds=seconds)})
        return None if present is None else changed


def parsed(fields: Mapping[str, str]) -> Changes:
    """Read the fields of a form; an empty field keeps its value.

    Raises ValueError with field, rule and value.
    """
    return Changes(
        target_s=_target_s("target", fields.get("target", "")),
        percentile=_percentile(fields.get("percentile", "")),
        ceiling=_ceiling(fields.get("ceiling", "")),
        min_replicas=_replicas("min", fields.get("min", "")),
        max_replicas=_replicas("max", fields.get("max", "")),
        first_token_s=_target_s("first_token", fields.get("first_token", "")),
        output_token_s=_target_s("output_token", fields.get("output_token", "")),
    )


def _target_s(field: str, text: str) -> float | None:
    if not text.strip():
        return None
    try:
        seconds = Duration.parse(text.strip()).seconds
    except ValueError as error:
        raise ValueError(f"{field}: {error}") from None
    if not 0.001 <= seconds <= 600.0:
        raise ValueError(f"{field} must be between 1ms and 10m; got {text:.20}")
    return seconds


def _percentile(text: str) -> int | None:
    if not text.strip():
        return None
    if text.strip() not in map(str, PERCENTILES):
        raise ValueError(f"percentile must be 90, 95 or 99; got {text!r:.20}")
    return int(text)


def _ceiling(text: str) -> float | None:
    if not text.strip():
        return None
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not 0.01 <= value <= 0.95:
        raise ValueError(f"ceiling must be a share from 0.01 to 0.95; got {text!r:.20}")
    return value


def _replicas(field: str, text: str) -> int | None:
    if not text.strip():
        return None
    if not text.strip().isdecimal() or not 1 <= int(text) <= 1000:
        raise ValueError(f"{field} must be a whole number from 1 to 1000; got {text!r:.20}")
    return int(text)
