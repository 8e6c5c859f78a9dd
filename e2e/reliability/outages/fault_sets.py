"""The faults of each outage: every fault on every verb, alone or on all, and faults of pods."""

from __future__ import annotations

from dataclasses import dataclass

from reliability.fault_proxy.calls import Verb
from reliability.fault_proxy.rules import (
    Delay,
    DelayEvents,
    Drip,
    Fault,
    Hang,
    LoginPage,
    LoseEvents,
    Refuse,
    RepeatEvents,
    Reset,
    Rule,
    Silence,
    TimeTravel,
    Truncate,
    WatchError,
    can_affect,
)
from reliability.testbed.exporter import OF_PODS, OF_PROMETHEUS, PodFault

VERBS = (Verb.GET, Verb.LIST, Verb.WATCH, Verb.CREATE, Verb.PATCH)
EVERY_VERB = frozenset(VERBS)
FAULTS: tuple[Fault, ...] = (
    Refuse(code=429, retry_after_s=1),
    Refuse(code=500),
    Refuse(code=503),
    Refuse(code=409),
    Refuse(code=422),
    Refuse(code=403),
    Refuse(code=410),
    Reset(),
    Reset(taken=True),
    Hang(),
    Delay(seconds=3.0),
    Drip(),
    Truncate(),
    LoginPage(),
    TimeTravel(seconds=20.0),
    WatchError(code=410),
    WatchError(code=500),
    Silence(),
    LoseEvents(),
    DelayEvents(seconds=5.0),
    RepeatEvents(),
)
AWAY: tuple[Fault, ...] = (Refuse(code=503), Refuse(code=403), Reset(), Hang(), LoginPage())
"""Also on every verb at once: the API server does not answer."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FaultSet:
    """Faults that occur at the same time."""

    name: str
    rules: tuple[Rule, ...] = ()
    pods: PodFault | None = None
    """Fault of the pages of the service whose load rises."""
    prometheus: PodFault | None = None
    """Fault of the Prometheus that is asked for them instead of its pods."""

    @property
    def ends_watches(self) -> bool:
        """Return whether no watch lives while it lasts, so that one has to begin after it.

        What spoils an answer only when it is whole breaks off the watches that are open, and lets
        the next one live: the answer to a watch is never whole.
        """
        return any(Verb.WATCH in rule.verbs and _ends(rule.fault) for rule in self.rules)


def _ends(fault: Fault) -> bool:
    return isinstance(fault, Refuse | WatchError | LoginPage) or fault == Reset(taken=False)


def fault_sets() -> list[FaultSet]:
    """Every fault on every verb that it can affect, alone; some on all; every fault of pods."""
    found = [
        FaultSet(name=f"{fault} on {verb}", rules=(Rule(fault=fault, verbs=frozenset({verb})),))
        for fault in FAULTS
        for verb in VERBS
        if can_affect(fault, verb)
    ]
    found += [
        FaultSet(name=f"{fault} on everything", rules=(Rule(fault=fault, verbs=EVERY_VERB),))
        for fault in AWAY
    ]
    found += [
        FaultSet(name=f"pods: {fault.value}", pods=fault) for fault in PodFault if fault in OF_PODS
    ]
    return found + [
        FaultSet(name=f"Prometheus: {fault.value}", prometheus=fault)
        for fault in PodFault
        if fault in OF_PROMETHEUS
    ]
