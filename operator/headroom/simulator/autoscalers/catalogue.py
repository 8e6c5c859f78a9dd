"""All autoscalers by name, and the settings that a sweep tries.

A grid is a star around the defaults: the defaults first, then each main knob alone at six or more
other values, so that a front over it shows the effect of one knob of a peer on every plant.
Settings that change two knobs are added where the effect of one depends on the other.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
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
    """How to create one autoscaler: `build(truth=truth, **knobs)`."""

    build: Callable[..., Autoscaler]
    knobs: Mapping[str, Knob] = field(default_factory=dict)
    """All knobs with their defaults."""
    summary: str = ""
    """Its rule in one line."""


def _first_line(docstring: str | None) -> str:
    return (docstring or "").strip().partition("\n")[0]


_ALL: tuple[type[Peer], ...] = (Headroom, *PEERS, *BOUNDS)
_ENTRIES: Mapping[str, Entry] = MappingProxyType(
    {
        peer.kind: Entry(build=peer, knobs=peer.knobs(), summary=_first_line(peer.__doc__))
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


Setting = Mapping[str, float]


def _star(
    axes: Mapping[str, Iterable[float]], together: Iterable[Setting] = ()
) -> tuple[Setting, ...]:
    alone = [{knob: value} for knob, values in axes.items() for value in values]
    return ({}, *alone, *together)


GRIDS: Mapping[str, tuple[Setting, ...]] = MappingProxyType(
    {
        "hpa-utilization": _star(
            {
                "target_utilization": (0.3, 0.4, 0.5, 0.6, 0.8, 0.9),
                "stabilization_s": (0.0, 60.0, 120.0, 180.0, 600.0, 900.0),
            },
            [{"target_utilization": 0.9, "stabilization_s": 60.0}],
        ),
        "hpa-queue": _star(
            {
                "target_batches": (0.1, 0.2, 0.35, 0.5, 0.75, 2.0),
                "stabilization_s": (0.0, 60.0, 120.0, 180.0, 600.0, 900.0),
            },
            [{"target_batches": 0.2, "stabilization_s": 60.0}],
        ),
        "hpa-p95": _star(
            {
                "target_ratio": (0.4, 0.5, 0.6, 0.7, 0.8, 0.9),
                "stabilization_s": (0.0, 60.0, 120.0, 180.0, 600.0, 900.0),
            },
            [{"target_ratio": 0.7, "stabilization_s": 60.0}],
        ),
        "hpa-rps": _star(
            {
                "target_share": (0.4, 0.5, 0.6, 0.7, 0.9, 1.0),
                "stabilization_s": (0.0, 60.0, 120.0, 180.0, 600.0, 900.0),
            },
            [{"target_share": 0.6, "stabilization_s": 60.0}],
        ),
        "keda": _star(
            {
                "target_batches": (0.1, 0.2, 0.35, 0.5, 0.75, 2.0),
                "latency_ratio": (0.5, 0.6, 0.7, 0.8, 0.9, 1.5),
            },
            [{"target_batches": 0.35, "latency_ratio": 1.5}],
        ),
        "knative": _star(
            {
                "concurrency_batches": (0.25, 0.5, 0.75, 1.25, 1.5, 2.0),
                "stable_window_s": (15.0, 30.0, 90.0, 120.0, 180.0, 300.0),
            },
            [{"concurrency_batches": 0.5, "stable_window_s": 180.0}],
        ),
        "ray-serve": _star(
            {
                "target_ongoing_requests": (1.0, 4.0, 8.0),
                "target_batches": (0.25, 0.5, 0.75, 1.0, 1.5, 2.0),
            },
            [
                {"target_batches": 0.5, "downscale_delay_s": 120.0},
                {"target_batches": 0.5, "upscale_delay_s": 10.0, "downscale_delay_s": 300.0},
                {"target_batches": 0.5, "upscale_delay_s": 10.0, "downscale_delay_s": 60.0},
                {"target_batches": 0.5, "upscale_delay_s": 0.0, "downscale_delay_s": 120.0},
            ],
        ),
        "llm-d-slo": _star(
            {
                "up_threshold": (0.45, 0.65, 0.75, 0.85, 0.95, 1.1),
                "stabilization_s": (0.0, 60.0, 120.0, 300.0, 600.0),
            },
            [{"up_threshold": 0.85, "down_threshold": 0.65}, {"above_floor": 1.0}],
        ),
        "wva-v1": _star(
            {
                "queue_threshold": (3.5, 4.0, 6.0, 8.0, 12.0, 16.0),
                "kv_threshold": (0.5, 0.6, 0.7, 0.85, 0.9, 0.95),
            },
            [{"queue_threshold": 12.0, "kv_threshold": 0.95}],
        ),
        "wva-v2": _star(
            {
                "kv_threshold": (0.4, 0.5, 0.6, 0.7, 0.9, 1.0),
                "scale_up_threshold": (0.6, 0.7, 0.75, 0.8, 0.9, 0.95),
            },
            [{"kv_threshold": 1.0, "scale_up_threshold": 0.95, "scale_down_boundary": 0.85}],
        ),
        "dynamo": _star(
            {
                "profile_ratio": (0.4, 0.5, 0.6, 0.7, 0.8, 0.9),
                "throughput_interval_s": (30.0, 60.0, 90.0, 120.0, 240.0, 300.0),
            },
            [{"profile_ratio": 0.7, "throughput_interval_s": 60.0}],
        ),
        "aibrix-apa": _star(
            {
                "target_usage": (0.2, 0.3, 0.4, 0.6, 0.7, 0.85),
                "window_s": (10.0, 30.0, 60.0, 120.0, 240.0, 300.0),
            },
            [{"target_usage": 0.4, "window_s": 60.0}],
        ),
        "aiad": _star(
            {
                "up_after_s": (0.0, 10.0, 20.0, 60.0, 90.0, 120.0),
                "down_after_s": (60.0, 120.0, 180.0, 600.0, 900.0, 1800.0),
            },
            [{"up_after_s": 10.0, "down_after_s": 900.0}],
        ),
        "static-peak": _star({"margin": (0.5, 0.6, 0.7, 0.8, 0.9, 1.1, 1.25, 1.5)}),
        "static-mean": _star({"margin": (0.75, 1.25, 1.5, 2.0, 2.5, 3.0)}),
    }
)
