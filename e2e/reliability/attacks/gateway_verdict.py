"""Damage by attacks on a gateway to other clients: lost requests and slower answers. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Self

from bench.figures import Figure, at_most, shown
from bench.server.loading import Load

MOST_SLOWDOWN = 1.2
MIB = 1 << 20
Loads = Mapping[str, Load]
"""Loads by victim."""


@dataclass(frozen=True, slots=True)
class Noticed:
    """Observation of one victim of one attack."""

    requests: int
    lost: int
    """Requests without the right answer."""
    failures: Mapping[int, int]
    """The same by HTTP status; below 1: without one (`serverbench.generator.exchange.Status`)."""
    slowdown: float | None
    """p95 of the answered requests to that without the attack; None: none was answered."""

    @classmethod
    def of(cls, attacked: Load, calm: Sequence[Load]) -> Self:
        """Compare a load with those before and after the attack, of which some were answered."""
        p95_s, usual_s = p95_of_answered(attacked), [p95_of_answered(one) for one in calm]
        known_s = [one for one in usual_s if one is not None]
        return cls(
            requests=attacked.requests,
            lost=attacked.requests - attacked.ok,
            failures=attacked.failures,
            slowdown=None if p95_s is None or not known_s else p95_s / max(known_s),
        )

    @property
    def holds(self) -> bool:
        """Whether the attack did not matter."""
        return not self.lost and self.slowdown is not None and self.slowdown <= MOST_SLOWDOWN

    def words(self) -> str:
        """Say it in a sentence."""
        slower = "none was answered" if self.slowdown is None else f"{self.slowdown:.2f}x"
        return (
            f"{self.lost} of {self.requests} requests without the right answer "
            f"(by status: {dict(self.failures)}), p95 of the answered ones: {slower}"
        )


@dataclass(slots=True)
class Outcome:
    """The outcome for one gateway under all attacks."""

    kills: int = 0
    discarded: int = 0
    """Comparisons next to other load of the machine."""
    unjudged: list[str] = field(default_factory=list)
    """Attacks all of whose comparisons were discarded: nothing is known of them."""
    peak_bytes: int = 0
    noticed: dict[str, Noticed] = field(default_factory=dict)
    """Effects by attack and victim."""

    def add(self, attack: str, calm: Loads, attacked: Loads, after: Loads) -> None:
        """Take what the victims noticed of an attack."""
        for victim, load in attacked.items():
            self.noticed[f"{attack}: {victim}"] = Noticed.of(load, [calm[victim], after[victim]])

    def figures(self) -> list[Figure]:
        """Return the rows of the report."""
        lost = sum(one.lost for one in self.noticed.values())
        ratios = {k: one.slowdown for k, one in self.noticed.items() if one.slowdown is not None}
        slowest = max(ratios, key=lambda key: ratios[key], default=None)
        return [
            shown("comparisons discarded, since the machine was busy", f"{self.discarded}"),
            at_most("attacks not judged, since all were", len(self.unjudged), 0, "", 0),
            at_most("kills for memory", self.kills, 0, "", 0),
            shown("most memory", f"{self.peak_bytes / MIB:.0f} MiB"),
            at_most("lost requests of others", lost, 0, "", 0),
            shown("p95 of others", "not measured")
            if slowest is None
            else at_most(f"p95 of others ({slowest})", ratios[slowest], MOST_SLOWDOWN, "x", 2),
        ]


def p95_of_answered(load: Load) -> float | None:
    """Return it in seconds; None: no request was answered."""
    answered = Load(load.latencies_s[: load.ok], load.seconds)
    return answered.quantile_s(0.95) if answered.requests else None
