"""Plan of the measurements: their order, and about how long each takes.

A visit starts a group of servers and measures all that is missing of them. Those that are compared
closely are up together and take turns within a round: what else the machine does falls on all.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import NamedTuple

from serverbench.experiments.scale import Scale
from serverbench.records import Case, Key
from serverbench.servers import BARE, OURS

ON_THE_USUAL_DEVICE = (
    Case.IDLE,
    Case.LIGHT,
    Case.STEADY,
    Case.CPU,
    Case.KNEE,
    Case.OVERLOAD,
)
ALONE = (Case.SLOW, Case.DISCONNECT, Case.LENGTHS)
"""Only of Headroom's server; each starts what it needs."""
CLOSE_PEERS = ("mosec",)
"""Compared in CPU per request, round by round."""
START_S, LOAD_START_S = 5.0, 1.5


class Visit(NamedTuple):
    """Servers that are up together, and what is measured of them."""

    servers: tuple[str, ...]
    keys: tuple[Key, ...]


def rounds(case: Case, server: str, scale: Scale) -> int:
    """Return how often a case is measured on a server; 0 if it does not apply."""
    close = server in (OURS, BARE)
    if case in ALONE or case is Case.SOAK:
        repeated = case in (Case.SLOW, Case.LENGTHS)
        return (scale.knee_rounds if repeated else 1) if server == OURS else 0
    match case:
        case Case.IDLE | Case.SIGTERM:
            return 1
        case Case.CPU:
            return scale.rounds if close or server in CLOSE_PEERS else 1
        case Case.KNEE | Case.OVERLOAD:
            return scale.knee_rounds if close else 1
        case _:
            return scale.rounds if close else scale.peer_rounds


def keys(cases: Collection[Case], servers: Sequence[str], scale: Scale) -> list[Key]:
    """Return every requested measurement."""
    return [
        Key(case, server, number)
        for case in cases
        for server in servers
        for number in range(rounds(case, server, scale))
    ]


def groups(servers: Sequence[str]) -> list[tuple[str, ...]]:
    """Return the servers that are up together."""
    together = tuple(name for name in servers if name in (OURS, BARE, *CLOSE_PEERS))
    alone = [(name,) for name in servers if name not in together]
    return ([together] if together else []) + alone


def visits(missing: Collection[Key], servers: Sequence[str]) -> list[Visit]:
    """Return visits in order: by round, over all groups; then cases with servers of their own."""
    found = []
    for number in range(1 + max((key.round for key in missing), default=0)):
        for group in groups(servers):
            own = [
                key
                for case in ON_THE_USUAL_DEVICE
                for key in sorted(missing)
                if key.case is case and key.round == number and key.server in group
            ]
            if own:
                found.append(Visit(group, tuple(own)))
    order = {case: at for at, case in enumerate((*ALONE, Case.SIGTERM, Case.SOAK))}
    rest = [key for key in missing if key.case in order]
    rest.sort(key=lambda key: (order[key.case], key.round, servers.index(key.server)))
    return found + [Visit((key.server,), (key,)) for key in rest]


def expected_s(case: Case, scale: Scale, soak_minutes: float = 0.0) -> float:
    """About how long one measurement takes, for the progress shown."""
    knee_s = (4 + scale.knee_tries) * (scale.knee_s + LOAD_START_S)
    slow_s = scale.slow_after_s + scale.slow_judged_s
    of_case: Mapping[Case, float] = {
        Case.IDLE: scale.idle_s,
        Case.LIGHT: scale.light_s + LOAD_START_S,
        Case.STEADY: scale.steady_s + LOAD_START_S,
        Case.CPU: 1.3 * (scale.cpu_s + LOAD_START_S),
        Case.KNEE: knee_s,
        Case.OVERLOAD: 2 * scale.calm_s + scale.overload_s + LOAD_START_S,
        Case.SLOW: slow_s + 2 * START_S,
        Case.DISCONNECT: 15.0,
        Case.SIGTERM: 8.0,
        Case.LENGTHS: 2 * knee_s + START_S,
        Case.SOAK: 62 * soak_minutes + START_S,
    }
    return of_case[case]
