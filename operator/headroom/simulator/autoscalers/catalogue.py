"""All autoscalers by name, each with its knobs."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from types import MappingProxyType

from headroom.simulator.autoscaler import Autoscaler, GroundTruth
from headroom.simulator.autoscalers.aiad import Aiad
from headroom.simulator.autoscalers.aibrix import AibrixApa
from headroom.simulator.autoscalers.bounds import Clairvoyant, IdealReactive, Oracle
from headroom.simulator.autoscalers.dynamo import Dynamo
from headroom.simulator.autoscalers.fixed import StaticMean, StaticPeak
from headroom.simulator.autoscalers.headroom import Headroom
from headroom.simulator.autoscalers.hpa import HpaLatency, HpaQueue, HpaRequests, HpaUtilization
from headroom.simulator.autoscalers.keda import Keda
from headroom.simulator.autoscalers.knative import Knative
from headroom.simulator.autoscalers.llmd import LlmdSlo
from headroom.simulator.autoscalers.peer import Knob, Peer
from headroom.simulator.autoscalers.ray_serve import RayServe
from headroom.simulator.autoscalers.wva import WvaSaturation, WvaTokens

PEERS: tuple[type[Peer], ...] = (
    HpaUtilization,
    HpaQueue,
    HpaLatency,
    HpaRequests,
    Keda,
    Knative,
    RayServe,
    LlmdSlo,
    WvaSaturation,
    WvaTokens,
    Dynamo,
    AibrixApa,
    Aiad,
    StaticPeak,
    StaticMean,
)
BOUNDS: tuple[type[Peer], ...] = (Oracle, Clairvoyant, IdealReactive)


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """Constructor of one autoscaler: `build(truth=truth, **knobs)`."""

    build: Callable[..., Autoscaler]
    check: Callable[[str, Knob], None]
    """Raises ValueError for a value out of a knob's range."""
    knobs: Mapping[str, Knob] = field(default_factory=dict)
    """All knobs with their defaults."""
    summary: str = ""
    """Its rule in one line."""


def _first_line(docstring: str | None) -> str:
    return (docstring or "").strip().partition("\n")[0]


_ALL: tuple[type[Peer], ...] = (Headroom, *PEERS, *BOUNDS)
_ENTRIES: Mapping[str, Entry] = MappingProxyType(
    {
        peer.kind: Entry(
            build=peer,
            check=peer.check,
            knobs=peer.knobs(),
            summary=_first_line(peer.__doc__),
        )
        for peer in _ALL
    }
)


def names() -> tuple[str, ...]:
    """Return all names: Headroom, its peers, the bounds."""
    return tuple(_ENTRIES)


def entries() -> Mapping[str, Entry]:
    """Return all of them by name."""
    return _ENTRIES


def make(
    name: str, truth: GroundTruth, knobs: Mapping[str, Knob] = MappingProxyType({})
) -> Autoscaler:
    """Return a new autoscaler of one service; ValueError for an unknown name, knob or value."""
    entry = _ENTRIES.get(name)
    if entry is None:
        raise ValueError(f"an autoscaler must be one of {', '.join(_ENTRIES)}; got {name!r}")
    unknown = [knob for knob in knobs if knob not in entry.knobs]
    if unknown:
        raise ValueError(
            f"{name}: a knob must be one of {', '.join(entry.knobs)}; got {', '.join(unknown)}"
        )
    values = {
        knob: typed(f"{name}: {knob}", entry.knobs[knob], value) for knob, value in knobs.items()
    }
    return entry.build(truth=truth, **values)


def typed(what: str, default: Knob, value: Knob) -> Knob:
    """Return the value in its knob's type: a choice, a switch, a whole number or a number.

    Raises ValueError for any other value.
    """
    if isinstance(default, StrEnum):
        choices = tuple(type(default))
        if value not in choices:
            raise ValueError(f"{what} must be one of {', '.join(choices)}; got {value!r}")
        return type(default)(value)
    if isinstance(default, str):
        return str(value)
    try:
        number = float(value)
    except ValueError:
        raise ValueError(f"{what} must be a number; got {value!r}") from None
    if isinstance(default, bool):
        if number not in (0.0, 1.0):
            raise ValueError(f"{what} must be 0 or 1; got {value!r}")
        return bool(number)
    if isinstance(default, int):
        if not number.is_integer():
            raise ValueError(f"{what} must be a whole number; got {value!r}")
        return int(number)
    return number
