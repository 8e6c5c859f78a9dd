"""Writes the children other than the Deployment, and decides when they are checked again."""

from __future__ import annotations

from collections.abc import Sequence

from headroom.api import InferenceService
from headroom.controller.act.adoption import ForeignObject
from headroom.controller.act.rejected_again import asks_to_wait, sent_again_after_s
from headroom.controller.act.state import ActState, ChildrenCheck
from headroom.controller.ports import Cluster, Manifest
from headroom.controller.scheduling import tick_period
from headroom.errors import ClusterError, Conflict, Forbidden, NamespaceTerminating, Rejected
from headroom.resources.service_account import runs_as

TROUBLED_AGAIN_AFTER_S = 6.0
"""A child that could not be read or written for a passing reason is tried again after this. What
such a reason says is reported if it is there again then: most are gone."""


async def write_other_children(
    cluster: Cluster,
    service: InferenceService,
    children: tuple[Manifest, ...],
    state: ActState,
    *,
    now_s: float,
    services: int,
    is_new: bool,
) -> str:
    """Write all but the Deployment, each on its own; return why one of them is not as desired.

    `is_new`: there is no Deployment yet, so the others are expected to be missing too.
    The check is noted before it is made: a hanging write costs one tick, not every tick.
    """
    checked = state.checked
    if checked is not None and checked.is_current(children, now_s):
        return checked.trouble
    every_s = tick_period.children_every_s(services)
    state.checked = ChildrenCheck(children=children, at_s=now_s, next_s=now_s + every_s)
    troubles: list[ClusterError] = []
    for manifest in children[:-1]:
        try:
            await state.writer.write(cluster, service, manifest, is_new=is_new)
        except NamespaceTerminating:
            state.checked = None
            raise
        except ClusterError as error:
            if isinstance(error, ForeignObject) and runs_as(children[-1], manifest):
                state.checked = None
                raise
            troubles.append(error)
    state.checked = _checked(children, checked, troubles, now_s, every_s)
    return state.checked.trouble


def _checked(
    children: tuple[Manifest, ...],
    before: ChildrenCheck | None,
    troubles: Sequence[ClusterError],
    now_s: float,
    every_s: float,
) -> ChildrenCheck:
    """Return the result of a check, and the time of the next one."""
    next_s, refused_since_s = now_s + every_s, None
    passing = [one for one in troubles if not isinstance(one, Rejected | Forbidden)]
    again = before is not None and before.children is children and before.passing
    said = [one for one in troubles if one not in passing or (again and not _passes(one))]
    if any(isinstance(error, Rejected | Forbidden) for error in troubles):
        refused_since_s = now_s
        if before and before.children is children and before.refused_since_s is not None:
            refused_since_s = before.refused_since_s
        slower = every_s / tick_period.SHORTEST_CHILDREN_S
        next_s = now_s + sent_again_after_s(now_s - refused_since_s, slower)
    if passing:
        next_s = min(next_s, now_s + TROUBLED_AGAIN_AFTER_S)
    return ChildrenCheck(
        children=children,
        at_s=now_s,
        next_s=next_s,
        trouble="; ".join(map(str, said)),
        passing=bool(passing),
        refused_since_s=refused_since_s,
    )


def _passes(error: ClusterError) -> bool:
    """Return whether it says nothing about the child: another writer was faster, or all wait."""
    return isinstance(error, Conflict) or asks_to_wait(error)
