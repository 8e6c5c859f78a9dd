"""The autoscalers that a study runs in each cell: defaults, and grids over their settings."""

from __future__ import annotations

from dataclasses import dataclass

from headroom.simulator.generation.autoscalers.peer import Knob


@dataclass(frozen=True, order=True, kw_only=True)
class Setting:
    """One autoscaler with its knobs."""

    kind: str
    knobs: tuple[tuple[str, Knob], ...] = ()

    @property
    def name(self) -> str:
        """The kind and its knobs."""
        words = ",".join(f"{knob}={value:g}" for knob, value in self.knobs)
        return f"{self.kind}({words})" if words else self.kind


_SHARES = (0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9)
HEADROOM = Setting(kind="headroom")
CLAIRVOYANTS = tuple(Setting(kind="clairvoyant", knobs=(("share", s),)) for s in _SHARES)
REACTIVE = tuple(Setting(kind="ideal-reactive", knobs=(("share", s),)) for s in _SHARES)
PEERS = (
    "llm-d-slo",
    "llm-d-tokens",
    "wva-v2",
    "dynamo-throughput",
    "dynamo-load",
    "aibrix",
    "production-stack",
    "kserve",
    "ray-serve-llm",
    "hpa-kv",
    "hpa-waiting",
)
DEFAULTS = tuple(Setting(kind=kind) for kind in PEERS)


def _grid(kind: str, knob: str, *values: float) -> tuple[Setting, ...]:
    return tuple(Setting(kind=kind, knobs=((knob, value),)) for value in values)


GRIDS = (
    *_grid("llm-d-slo", "predictor_bias", 0.7, 1.15, 1.3, 1.6, 2.0),
    *_grid("llm-d-tokens", "kv_target", 0.3, 0.4, 0.5, 0.6, 0.7),
    *_grid("wva-v2", "up", 0.4, 0.5, 0.6, 0.75),
    *_grid("dynamo-throughput", "correction", 0.5, 0.65, 0.8, 1.2),
    *_grid("dynamo-load", "sensitivity", 0.3, 0.5, 0.65),
    *_grid("aibrix", "target", 0.2, 0.3, 0.4, 0.65),
    *_grid("production-stack", "threshold", 1, 2, 3),
    *_grid("kserve", "threshold", 5, 10, 20, 40),
    *_grid("ray-serve-llm", "target", 5, 10, 20, 40),
    *_grid("hpa-kv", "target", 0.3, 0.4, 0.5, 0.6, 0.7),
    *_grid("hpa-waiting", "target", 1, 2, 3),
)


def all_settings(*, grids: bool) -> tuple[Setting, ...]:
    """Return everything that runs in a cell; without grids, peers at their defaults only."""
    own = (HEADROOM, *CLAIRVOYANTS, *REACTIVE, *DEFAULTS)
    return (*own, *GRIDS) if grids else own
