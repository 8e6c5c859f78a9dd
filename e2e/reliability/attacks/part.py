"""The part `attacks` of `make reliability`: its components, their order and its options."""

from __future__ import annotations

import argparse
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Self

from bench.figures import Figure
from reliability.attacks import activator, gateway, generating, operator, server
from reliability.testbed.testbed import SharedCluster

TITLE = "Attacks within the shipped limits"
Say = Callable[[str], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class PartOptions:
    """The options of this part."""

    quick: bool
    only: str
    """Attacks whose name, after that of the component, has this in it."""
    seconds: float | None
    """Duration of each attack; None: as each component needs."""

    @classmethod
    def of(cls, given: argparse.Namespace) -> Self:
        """Take them from the command line."""
        return cls(quick=given.quick, only=given.only, seconds=given.attack_seconds)

    def seconds_or(self, full_s: float, quick_s: float) -> float:
        """Return how long an attack lasts that usually takes so long."""
        if self.seconds is not None:
            return self.seconds
        return quick_s if self.quick else full_s


Component = Callable[[PartOptions, Say], Awaitable[Sequence[Figure]]]


async def _server(options: PartOptions, say: Say) -> Sequence[Figure]:
    seconds = options.seconds_or(server.ATTACK_S, server.QUICK_S)
    return await server.measure(seconds, options.only, quick=options.quick, say=say)


async def _generating(options: PartOptions, say: Say) -> Sequence[Figure]:
    seconds = options.seconds_or(generating.ATTACK_S, generating.QUICK_S)
    return await generating.measure(seconds, options.only, quick=options.quick, say=say)


async def _gateway(options: PartOptions, say: Say) -> Sequence[Figure]:
    seconds = options.seconds_or(gateway.ATTACK_S, gateway.QUICK_S)
    return await gateway.measure(seconds, options.only, quick=options.quick, say=say)


async def _activator(options: PartOptions, say: Say) -> Sequence[Figure]:
    seconds = options.seconds_or(activator.ATTACK_S, activator.QUICK_S)
    return await activator.measure(seconds, options.only, quick=options.quick, say=say)


COMPONENTS: Mapping[str, Component] = {
    "server": _server,
    "generating": _generating,
    "activator": _activator,
    "gateway": _gateway,
}
"""Components that need no cluster."""
OPERATOR = "operator"
"""The one that needs a cluster."""


async def measure_operator(on: SharedCluster, say: Say, options: PartOptions) -> Sequence[Figure]:
    """Attack the operator."""
    seconds = options.seconds_or(operator.ATTACK_S, operator.QUICK_S)
    pods_each = operator.QUICK_PODS_EACH if options.quick else operator.PODS_EACH
    return await operator.measure(on, seconds, pods_each, say)


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add how long and how much; `--only` is that of the other parts."""
    add = parser.add_argument_group("attacks").add_argument
    add("--quick", action="store_true", help="a few attacks of seconds each, below 2 minutes")
    add("--attack-seconds", type=float, help="seconds of each attack (as the component needs)")


def chosen(options: PartOptions) -> Sequence[str]:
    """Return the components whose name is at the start of `--only`, or all."""
    components = [*COMPONENTS, OPERATOR]
    return [one for one in components if options.only.partition(":")[0] == one] or components


async def measure(
    options: PartOptions, show: Callable[[str, Sequence[Figure]], None], say: Say
) -> None:
    """Attack each component that needs no cluster in turn, and show its figures."""
    for name in (one for one in chosen(options) if one in COMPONENTS):
        show(name, await COMPONENTS[name](options, say))
