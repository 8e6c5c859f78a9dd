"""`status.partner`: the other pool, of a service that is a prefill or a decode pool of a pair."""

from __future__ import annotations

from headroom.api.service_status.conditions import shortened
from headroom.api.service_status.demand_status import rate_text
from headroom.api.service_status.status_types import Count, Text, Word, rounded
from headroom.api.values import Value
from headroom.scaling.values.partner import PairDecision


class PartnerStatus(Value):
    """The other pool of a pair of prefill and decode pools. Unknown values are omitted."""

    name: Word
    """Name of the InferenceService."""
    role: Word
    """Role of the other pool: Prefill or Decode."""
    replicas: Count | None = None
    """Replicas that it requests. The ratio of both pools is a result, never a setting."""
    ready_replicas: Count | None = None
    """Its replicas that take requests."""
    arrivals_per_second: float | None = None
    """Requests that arrive at it."""
    passed_share: float | None = None
    """In a decode pool: requests that reach it per request that reaches the prefill pool, learned
    over the last minutes. Above 1 where the servers compute short prompts in the decode pool."""
    announced_per_second: float | None = None
    """In a decode pool: the rate that it expects from the prefill pool, at most what that pool's
    replicas can pass on."""
    held_for: Text | None = None
    """Reason why the partner's state blocks removals here; omitted if replicas may be removed."""

    @property
    def sentence(self) -> str:
        """The partner as text, for people."""
        parts = [f"{self.role.lower()} pool {self.name}"]
        if self.arrivals_per_second is not None:
            parts.append(f"{rate_text(self.arrivals_per_second)} arrive there")
        if self.passed_share is not None:
            parts.append(f"{self.passed_share:.2f} of each arrive here")
        if self.announced_per_second is not None:
            parts.append(f"{rate_text(self.announced_per_second)} are expected from it")
        if self.replicas is not None:
            parts.append(f"{self.ready_replicas or 0} of its {self.replicas} replicas are ready")
        if self.held_for:
            parts.append(f"no replica is removed here, because {self.held_for}")
        return ", ".join(parts)


def partner_status(pair: PairDecision | None) -> PartnerStatus | None:
    """Return what a decision saw of its partner; None without one."""
    if pair is None:
        return None
    partner, report = pair.partner, pair.partner.report
    seen = report if report is not None and report.fresh else None
    return PartnerStatus(
        name=partner.name,
        role=partner.role,
        replicas=None if report is None else report.replicas,
        ready_replicas=None if report is None else report.ready,
        arrivals_per_second=None if seen is None else rounded(seen.arrival_rps),
        passed_share=rounded(pair.passed_share),
        announced_per_second=rounded(pair.announced_rps),
        held_for=shortened(pair.held_for) or None,
    )
