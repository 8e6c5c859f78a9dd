"""Rules of the fault proxy as values, and the matcher that finds the fault for a request.

The first rule that matches a request applies its fault. A rule counts the requests that it could
have affected, so that it can be bound to the n-th of them.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from reliability.fault_proxy.calls import Call, Verb


@dataclass(frozen=True, slots=True, kw_only=True)
class Refuse:
    """Answer with a Status of this code and do nothing: 429, 5xx, 409, 422, 403, 410."""

    code: int
    message: str = "refused by the fault proxy"
    retry_after_s: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Reset:
    """Break the connection off; `taken` means after the API server did what was asked."""

    taken: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Hang:
    """Never answer; `taken` as for a reset."""

    taken: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Delay:
    """Answer late, after the API server did what was asked."""

    seconds: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Drip:
    """Send the answer so slowly that no wait between two bytes is long."""

    bytes_per_s: float = 20.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Truncate:
    """Send this share of the answer and close, though more was announced."""

    share: float = 0.5


@dataclass(frozen=True, slots=True, kw_only=True)
class LoginPage:
    """Answer 200 with a page of HTML, as a proxy in between does that lost its session."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TimeTravel:
    """Answer a read as it was answered so long ago, as an API server does that lags behind."""

    seconds: float


@dataclass(frozen=True, slots=True, kw_only=True)
class WatchError:
    """Open the stream and send one ERROR event of this code, then end."""

    code: int = 410


@dataclass(frozen=True, slots=True, kw_only=True)
class Silence:
    """Keep the stream open and pass nothing on, also not what comes later of the same stream."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LoseEvents:
    """Pass every n-th event over."""

    every: int = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class DelayEvents:
    """Pass each event on this much later, in order."""

    seconds: float


@dataclass(frozen=True, slots=True, kw_only=True)
class RepeatEvents:
    """Pass each event on twice, the second time after the one that follows it."""


InStream = Silence | LoseEvents | DelayEvents | RepeatEvents
"""Faults that also affect a stream that is already open."""

Fault = (
    Refuse
    | Reset
    | Hang
    | Delay
    | Drip
    | Truncate
    | LoginPage
    | TimeTravel
    | WatchError
    | Silence
    | LoseEvents
    | DelayEvents
    | RepeatEvents
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """A fault, and the requests it applies to; an empty or zero field applies to all."""

    fault: Fault
    verbs: frozenset[Verb] = frozenset()
    resources: frozenset[str] = frozenset()
    name: str = ""
    first: int = 1
    """First of the matching requests to affect, counted from one."""
    last: float = math.inf
    since_s: float = 0.0
    until_s: float = math.inf
    """On the caller's clock; the end itself is excluded."""

    def fits(self, call: Call, now_s: float) -> bool:
        """Return whether the request is of the kind that the rule affects, whichever its number."""
        return (
            self.since_s <= now_s < self.until_s
            and (not self.verbs or call.verb in self.verbs)
            and (not self.resources or call.resource in self.resources)
            and (not self.name or call.name == self.name)
            and can_affect(self.fault, call.verb)
        )

    def affects_nth(self, number: int) -> bool:
        """Return whether the n-th matching request is affected."""
        return self.first <= number <= self.last


def can_affect(fault: Fault, verb: Verb) -> bool:
    """Return whether the fault means anything for the verb."""
    if isinstance(fault, InStream | WatchError):
        return verb is Verb.WATCH
    if isinstance(fault, TimeTravel):
        return verb in (Verb.GET, Verb.LIST)
    return True


@dataclass(frozen=True, slots=True)
class Plan:
    """Rules in order, and how many requests matched each; an immutable value."""

    rules: tuple[Rule, ...] = ()
    fitted: tuple[int, ...] = ()

    @classmethod
    def of(cls, rules: Sequence[Rule]) -> Plan:
        """Begin to count."""
        return cls(tuple(rules), (0,) * len(rules))

    def judge(self, call: Call, now_s: float) -> tuple[Fault | None, Plan]:
        """Return the fault of the request, None for nothing, and the plan after it."""
        counts = list(self.fitted)
        fault: Fault | None = None
        for place, rule in enumerate(self.rules):
            if not rule.fits(call, now_s):
                continue
            counts[place] += 1
            if fault is None and rule.affects_nth(counts[place]):
                fault = rule.fault
        return fault, Plan(self.rules, tuple(counts))

    def of_stream(self, call: Call, now_s: float) -> Fault | None:
        """Return the fault of a stream that is open; nothing is counted."""
        fitting = (rule for rule in self.rules if rule.fits(call, now_s))
        return next((rule.fault for rule in fitting), None)
