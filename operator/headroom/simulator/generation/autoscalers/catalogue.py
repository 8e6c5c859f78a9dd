"""All autoscalers of generating services by name."""

from __future__ import annotations

from functools import partial

from headroom.simulator.generation.autoscalers.bounds import Clairvoyant, Fixed, IdealReactive
from headroom.simulator.generation.autoscalers.by_gauge import (
    Aibrix,
    HpaOnMemory,
    HpaOnWaiting,
    KServe,
    ProductionStack,
    RayServeLlm,
)
from headroom.simulator.generation.autoscalers.dynamo import DynamoLoad, DynamoThroughput
from headroom.simulator.generation.autoscalers.headroom import TokenHeadroom
from headroom.simulator.generation.autoscalers.llmd_slo import LlmdTokenSlo
from headroom.simulator.generation.autoscalers.llmd_tokens import LlmdTokens
from headroom.simulator.generation.autoscalers.peer import Knob, TokenPeer
from headroom.simulator.generation.autoscalers.wva import WvaSaturation
from headroom.simulator.generation.run import TokenAutoscalerFactory

KINDS: dict[str, type[TokenPeer]] = {
    each.kind: each
    for each in (
        TokenHeadroom,
        LlmdTokenSlo,
        LlmdTokens,
        WvaSaturation,
        DynamoThroughput,
        DynamoLoad,
        Aibrix,
        ProductionStack,
        KServe,
        RayServeLlm,
        HpaOnMemory,
        HpaOnWaiting,
        Fixed,
        Clairvoyant,
        IdealReactive,
    )
}
BOUNDS = frozenset({"clairvoyant", "ideal-reactive", "fixed"})


def autoscaler(kind: str, **knobs: Knob) -> TokenAutoscalerFactory:
    """Return the factory of an autoscaler with these knobs.

    Raises:
        ValueError: no autoscaler, or no knob of it, has this name.
    """
    if kind not in KINDS:
        raise ValueError(f"an autoscaler must be one of {', '.join(KINDS)}; got {kind!r:.60}")
    known = KINDS[kind].knobs()
    for knob in knobs:
        if knob not in known:
            raise ValueError(f"{kind}: a knob must be one of {', '.join(known)}; got {knob!r:.60}")
    return partial(_make, kind, tuple(knobs.items()))


def _make(kind: str, knobs: tuple[tuple[str, Knob], ...], truth: object) -> TokenPeer:
    return KINDS[kind](truth=truth, **dict(knobs))  # type: ignore[arg-type]
