"""Paces the evaluations for changes, per service and per namespace. Pure.

A hundred changes of a spec in a second do not cause a hundred ticks, nor do two changes a second of
each of fifty services: evaluations for changes are as many as those of 40 services for their
period, beyond a few at once.
"""

from __future__ import annotations

from dataclasses import dataclass, field

CHANGES_APART_S = 0.5
"""Time between two ticks of a service for changes."""
OWNER_CHANGES_APART_S = 0.05
"""The same of a namespace, once it has used up those that it may have at once."""
AT_ONCE = 20
MOST_OWNERS = 1024


@dataclass(slots=True)
class ChangeTurns:
    """The turns that the namespaces have taken; times are of the event loop."""

    _taken_s: dict[str, float] = field(default_factory=dict)
    """Time when a namespace would have had its last turn, were they evenly apart."""

    def next_s(self, owner: str, changed_s: float, now_s: float) -> float:
        """Return when a service that was last changed then may have a tick for a change."""
        turn_s = self._taken_s.get(owner, now_s) - AT_ONCE * OWNER_CHANGES_APART_S
        return max(now_s, changed_s + CHANGES_APART_S, turn_s)

    def take(self, owner: str, now_s: float) -> None:
        """Note that a turn is taken."""
        self._taken_s[owner] = max(now_s, self._taken_s.get(owner, now_s)) + OWNER_CHANGES_APART_S
        if len(self._taken_s) > MOST_OWNERS:
            self._taken_s = {one: at_s for one, at_s in self._taken_s.items() if at_s > now_s}
