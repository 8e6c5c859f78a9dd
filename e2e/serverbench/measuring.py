"""Carries out visits: starts the servers, measures, and yields each record."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path

from results import digest
from serverbench.experiments import faults, knees, lengths, rates, soak
from serverbench.experiments.scale import Scale
from serverbench.loading import LoadError, Values
from serverbench.peer_servers import PEER_SERVERS
from serverbench.plan import ON_THE_USUAL_DEVICE, Visit
from serverbench.records import Case, Key, Record, finite
from serverbench.running import CannotStartError, Running, running
from serverbench.servers import (
    BARE,
    BARE_ASGI,
    HEADROOM,
    HERE,
    OURS,
    PEERS,
    REQUIREMENTS,
    Device,
    Server,
)

SERVERS: Mapping[str, Server] = {
    server.name: server for server in (HEADROOM, BARE_ASGI, *PEER_SERVERS)
}
OUR_SOURCES = (HERE.parents[1] / "model_server" / "headroom_server", HERE.parent / "bench")
SHOWN_CHARACTERS = 300


@dataclass(frozen=True, slots=True)
class Bench:
    """Setup that all visits share."""

    scale: Scale
    environments: Path
    soak_minutes: float
    say: Callable[[str], None]


@cache
def fingerprint(key: Key, scale: Scale, soak_minutes: float) -> str:
    """Return a digest of everything that a measurement depends on, as of the first call."""
    close = key.server in (OURS, BARE) or key.case is Case.CPU
    sources = [PEERS, *(OUR_SOURCES if close else ())]
    if key.server not in (OURS, BARE):
        sources.append(REQUIREMENTS / f"{key.server}.txt")
    return digest(sources, scale, soak_minutes if key.case is Case.SOAK else None)


def visited(visit: Visit, bench: Bench) -> Iterator[Record]:
    """A record for each key of the visit; what could not be measured says why."""
    if visit.keys[0].case not in ON_THE_USUAL_DEVICE:
        (key,) = visit.keys
        yield _recorded(key, bench, partial(_alone, key, bench))
        return
    with ExitStack() as stack:
        up: dict[str, Running] = {}
        for name in visit.servers:
            own = [key for key in visit.keys if key.server == name]
            if not own:
                continue
            try:
                bench.say(f"starting {name}")
                server = running(SERVERS[name], Device(), bench.environments)
                up[name] = stack.enter_context(server)
            except CannotStartError as error:
                yield from unmeasured(own, bench, str(error))
        yield from _together([key for key in visit.keys if key.server in up], up, bench)


def _together(keys: Sequence[Key], up: Mapping[str, Running], bench: Bench) -> Iterator[Record]:
    """Measure the servers that are up: idle all at once, then one after the other."""
    idle = [key for key in keys if key.case is Case.IDLE]
    if idle:
        bench.say("idle servers")
        found = rates.idle([up[key.server] for key in idle], bench.scale)
        for key in idle:
            yield _record(key, bench, found[key.server])
    for key in keys:
        if key.case is not Case.IDLE:
            bench.say(f"{key.case} {key.server}, round {key.round + 1}")
            yield _recorded(key, bench, partial(_rate, key, up[key.server], bench))


def unmeasured(keys: Sequence[Key], bench: Bench, why: str) -> Iterator[Record]:
    """Records of what cannot be measured."""
    for key in keys:
        yield _record(key, bench, {}, why)


def _rate(key: Key, target: Running, bench: Bench) -> Values:
    scale, seed = bench.scale, key.round + 1
    match key.case:
        case Case.LIGHT:
            found = rates.light(target, scale, seed)
        case Case.STEADY:
            found = rates.steady(target, scale, seed)
        case Case.CPU:
            found = rates.cpu(target, scale, seed)
        case Case.KNEE:
            found = knees.knee(target, scale, key.round, Device())
        case _:
            found = rates.overload(target, scale, seed, Device())
    if (ended := target.process.poll()) is not None:
        raise CannotStartError(f"{key.server}: ended with {ended} under load")
    return found


def _alone(key: Key, bench: Bench) -> Values:
    bench.say(f"{key.case} {key.server}, round {key.round + 1}")
    environments, scale, seed = bench.environments, bench.scale, key.round + 1
    match key.case:
        case Case.SLOW:
            return faults.slow(environments, scale, seed)
        case Case.DISCONNECT:
            return faults.disconnect(environments)
        case Case.LENGTHS:
            return lengths.compared(environments, scale, seed)
        case Case.SOAK:
            return soak.soak(environments, bench.soak_minutes, bench.say)
        case _:
            return faults.sigterm(SERVERS[key.server], environments)


def _recorded(key: Key, bench: Bench, measure: Callable[[], Values]) -> Record:
    try:
        return _record(key, bench, measure())
    except (CannotStartError, LoadError, OSError, ValueError) as error:
        return _record(key, bench, {}, f"{type(error).__name__}: {error}")


def _record(key: Key, bench: Bench, values: Values, error: str = "") -> Record:
    kept = {name: value for name, value in values.items() if not math.isnan(value)}
    return Record(
        case=key.case,
        server=key.server,
        round=key.round,
        fingerprint=fingerprint(key, bench.scale, bench.soak_minutes),
        values=finite(kept),
        error=error[:SHOWN_CHARACTERS],
    )
