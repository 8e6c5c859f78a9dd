"""Chooses how a rollout replaces pods that hold accelerators: by a surge, or in place. Pure.

    a surge replica first     the earlier replicas serve until it is ready
    in place, at once         the operator's limit has no room for one, or no replica serves
    in place, after a wait    the scheduler or a quota refuses it what an earlier one gives back
    never in place            a new pod failed for another reason: in place would fail as well

All of it follows from the cluster, so a restarted operator goes on.
"""

from __future__ import annotations

from dataclasses import dataclass

from headroom.api.timestamps import rfc3339
from headroom.controller.decide.rollout_facts import RolloutFacts
from headroom.controller.decide.rollout_room import held_back, in_place_s
from headroom.resources.rolling_update import SURGE, RollingUpdate, in_place


@dataclass(frozen=True, slots=True, kw_only=True)
class RolloutPlan:
    """The rolling update that the Deployment is to have."""

    update: RollingUpdate
    surges: bool = False
    """A replica beyond the requested ones may exist, and hold accelerators."""
    why: str = ""
    """Text: the cause of its wait, or of its being in place; empty where all is usual."""


IN_PLACE = "replicas are replaced in place, because there was no accelerator for a surge replica"
NO_ROOM_YET = "the surge replica finds no room; if that lasts, replicas are replaced in place"
NO_ROOM = "replicas are replaced in place: --max-accelerators leaves no room for a surge replica"


def plan(facts: RolloutFacts) -> RolloutPlan:
    """Return the rolling update for this moment."""
    if facts.starts and not (facts.rolling and facts.live.is_in_place):
        if not facts.fits:
            return RolloutPlan(update=in_place(facts.missing), why=NO_ROOM)
        if facts.none_serves:
            return RolloutPlan(update=in_place(facts.missing))
        return RolloutPlan(update=SURGE, surges=True)
    if not facts.rolling:
        # one that has no room keeps what it has: limits change often, and each write costs a tick
        keeps = facts.live.is_in_place and not facts.fits
        return RolloutPlan(update=facts.live if keeps else SURGE)
    if facts.live.is_in_place:
        return RolloutPlan(update=_further(facts), why=IN_PLACE)
    due_s = in_place_s(facts)
    if due_s is None:
        return RolloutPlan(update=SURGE, surges=True, why=held_back(facts))
    if facts.now_s < due_s:
        why = f"{NO_ROOM_YET} from {rfc3339(due_s)} on"
        return RolloutPlan(update=SURGE, surges=True, why=why)
    return RolloutPlan(update=in_place(facts.missing), why=IN_PLACE)


def _further(facts: RolloutFacts) -> RollingUpdate:
    """Return how a rollout in place goes on: stricter at once, and looser only where it is stuck.

    A leaving replica makes room for the next a moment later; until then one more seems missing.
    """
    wanted = in_place(facts.missing)
    live, most = facts.live.unavailable, wanted.unavailable
    if isinstance(live, int) and isinstance(most, int) and most > live:
        due_s = in_place_s(facts)
        return wanted if due_s is not None and due_s <= facts.now_s else facts.live
    return wanted
