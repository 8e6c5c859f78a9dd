"""Divides the room below `--max-accelerators` between a prefill and a decode pool. Pure.

A pair carries no more than its scarcer pool, so the one that asks first must not take what the
other needs. Nothing is taken away.
"""

from __future__ import annotations

from dataclasses import dataclass

from headroom.scaling.accelerator_allocation import Demand, share


@dataclass(frozen=True, slots=True, kw_only=True)
class PairNeeds:
    """Requested and needed replicas of both pools, as of their last ticks."""

    partner_uid: str
    replicas: int
    needed: int
    partner_replicas: int
    partner_needed: int


def own_room(pair: PairNeeds, count: int, of_partner: int, accelerators: int) -> int:
    """Return how many replicas a pool may have of the accelerators that both may have.

    Needs first, max-min; then what neither has asked for, in proportion to them: where one pool
    begins to grow, the other one says a tick later whether it does too. `count` is of one replica,
    `of_partner` what the other pool holds.

    Worked: 8 for both, each has 2 replicas of 1 and needs 2: 4. Once it needs 6 and the other one
    still 2: 6; if that needs 6 as well: 4.
    """
    each = max(1, of_partner // max(1, pair.partner_replicas))
    own, partner = (
        Demand(
            name="own",
            desired=max(pair.needed, pair.replicas),
            allocated=pair.replicas,
            accelerators=count,
        ),
        Demand(
            name="partner",
            desired=max(pair.partner_needed, pair.partner_replicas),
            allocated=pair.partner_replicas,
            accelerators=each,
        ),
    )
    given = share((own, partner), accelerators)
    left = accelerators - count * given["own"] - each * given["partner"]
    ours, theirs = count * own.desired, each * partner.desired
    return given["own"] + max(0, left * ours // max(1, ours + theirs)) // count
