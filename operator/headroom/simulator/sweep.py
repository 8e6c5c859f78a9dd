"""Sweeps the knobs of peers: the best front of each, and its points that beat Headroom.

Tuning is in hindsight and per service of a scenario: a tuned peer knows which setting works.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby

from headroom.simulator.report.comparison import OURS, dominates, family, front, is_bound
from headroom.simulator.report.summary import Summary


@dataclass(frozen=True, slots=True, kw_only=True)
class Tuned:
    """One peer on one service, over all its settings."""

    scenario: str
    service: str
    peer: str
    settings: int
    """Number of settings tried."""
    front: tuple[Summary, ...]
    """Cheapest first; no setting of this peer is better in one of misses and cost and no worse in
    the other."""
    beating: tuple[Summary, ...] | None
    """Points of the front that beat Headroom; None if Headroom did not run."""


def settings_of(
    peers: Sequence[str], grids: Mapping[str, Sequence[Mapping[str, float]]]
) -> tuple[tuple[str, Mapping[str, float]], ...]:
    """Return every setting to try, peer by peer; a peer without a grid is tried at its defaults."""
    return tuple((peer, setting) for peer in peers for setting in grids.get(peer, ({},)))


def tuned(summaries: Sequence[Summary]) -> tuple[Tuned, ...]:
    """Return each peer's best front on each service, without bounds.

    Summaries must be grouped by service, as `summarized` returns them.
    """
    found: list[Tuned] = []
    for (scenario, service), group in groupby(summaries, key=lambda s: (s.scenario, s.service)):
        rows = list(group)
        ours = [row for row in rows if family(row.autoscaler) == OURS]
        for peer in dict.fromkeys(family(row.autoscaler) for row in rows):
            if peer == OURS or is_bound(peer):
                continue
            tried = [row for row in rows if family(row.autoscaler) == peer]
            best = front(tried)
            beating = tuple(point for point in best if any(dominates(point, our) for our in ours))
            found.append(
                Tuned(
                    scenario=scenario,
                    service=service,
                    peer=peer,
                    settings=len(tried),
                    front=best,
                    beating=beating if ours else None,
                )
            )
    return tuple(found)
