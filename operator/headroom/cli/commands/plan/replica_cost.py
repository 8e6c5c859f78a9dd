"""Cost and limits of one generating replica: measured, from the table, or given."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, TypeVar

from headroom.cli.commands.plan.arguments import missing
from headroom.cli.commands.plan.generation_options import ReplicaOptions
from headroom.cli.commands.plan.measured_engine import MeasuredEngine
from headroom.planner.accelerators import PUBLISHED_FACTOR, accelerator
from headroom.planner.errors import require
from headroom.scaling.generation.learning.iteration_cost.ratios import Ratios
from headroom.scaling.generation.learning.model_inputs import scaled
from headroom.scaling.values.tokens import EngineLimits, IterationCost

_Number = TypeVar("_Number", int, float)
MS = 1000.0
FAR = 1.25
"""Times the rate that was seen: what is planned beyond is guessed."""
USUAL_SEQUENCES, USUAL_ITERATION_TOKENS = 256, 8192
"""vLLM's on large accelerators, where neither the options nor a server say another number."""
NO_SEQUENCES = (
    f"sequences at once: the server does not state its limit, so {USUAL_SEQUENCES} are assumed. "
    "Give --max-sequences"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplicaCost:
    """One replica to plan with."""

    cost: IterationCost
    limits: EngineLimits
    gpus: int
    source: str
    unknown: tuple[str, ...] = ()
    seen_rps: float | None = None
    """Requests per second while it was measured; None where it was not."""

    def planned(self, rate_rps: float) -> ReplicaCost:
        """Return the cost, with a doubt if the planned rate is far above the measured one."""
        if self.seen_rps is None or rate_rps <= FAR * self.seen_rps:
            return self
        beyond = (
            f"the cost at the planned {rate_rps:.3g}/s per replica: it was measured at "
            f"{self.seen_rps:.3g}/s. Measure again at a higher rate"
        )
        return replace(self, unknown=(*self.unknown, beyond))

    def report(self) -> dict[str, Any]:
        """Return the cost for JSON."""
        cost = self.cost
        return {
            "fixedSeconds": cost.fixed_s,
            "promptTokenSeconds": cost.prompt_token_s,
            "sequenceSeconds": cost.sequence_s,
            "contextTokenSeconds": cost.context_token_s,
            "expertsSeconds": cost.experts_s,
            "expertShare": cost.expert_share,
            "source": self.source,
            "unknown": list(self.unknown),
        }

    def lines(self) -> list[str]:
        """Return the cost as text."""
        cost = self.cost
        parts = [
            f"{MS * cost.fixed_s:.3g} ms",
            f"{MS * cost.prompt_token_s:.3g} ms per prompt token",
            f"{MS * cost.sequence_s:.3g} ms per sequence",
            f"{MS * cost.context_token_s:.3g} ms per token of context",
        ]
        if cost.experts_s > 0.0:
            parts.append(
                f"up to {MS * cost.experts_s:.3g} ms for the experts of a mixture, of which a "
                f"token uses {100 * cost.expert_share:.3g} %"
            )
        taken = f"{', '.join(parts[:-1])} and {parts[-1]}"
        return [
            f"an iteration takes {taken}: {self.source}",
            *(f"not known: {one}" for one in self.unknown),
        ]


def check_given_once(given: ReplicaOptions) -> None:
    """Raise ImpossiblePlan unless the options name the cost in one way."""
    named = {
        "--measure": given.measure is not None,
        "--on": given.on is not None,
        "--iteration-ms": given.iteration_ms is not None or given.prompt_token_ms is not None,
    }
    ways = [name for name, is_given in named.items() if is_given]
    if not ways:
        missing("the cost of an iteration", "--on qwen3-32b/2xh100")
    require(
        len(ways) == 1,
        "the cost of an iteration must be given in one way",
        " and ".join(ways),
        f"Leave out {ways[-1]}",
    )


def replica_cost(given: ReplicaOptions, engine: MeasuredEngine | None) -> ReplicaCost:
    """Return the replica; ImpossiblePlan says which option is missing or wrong."""
    if engine is not None:
        cost, gpus, seen = engine.cost, 1, engine.limits
        source, unknown = f"from {engine.source}", engine.unknown
        if given.max_sequences is None and seen.sequences is None:
            unknown = (*unknown, NO_SEQUENCES)
    elif given.on is not None:
        row = accelerator(given.on)
        cost, gpus, seen = (
            scaled(row.cost, PUBLISHED_FACTOR),
            row.gpus,
            EngineLimits(kv_tokens=row.kv_tokens),
        )
        source, unknown = f"the table of GPUs, times {PUBLISHED_FACTOR:g}", ()
    else:
        cost, unknown = _given_cost(given)
        gpus, seen, source = 1, EngineLimits(), "as given"
    limits = EngineLimits(
        kv_tokens=_first(given.kv_tokens, seen.kv_tokens),
        sequences=_first(given.max_sequences, seen.sequences, USUAL_SEQUENCES),
        iteration_tokens=_first(
            given.iteration_tokens, seen.iteration_tokens, USUAL_ITERATION_TOKENS
        ),
    )
    gpus = gpus if given.gpus is None else given.gpus
    return ReplicaCost(
        cost=cost,
        limits=limits,
        gpus=gpus,
        source=source,
        unknown=unknown,
        seen_rps=None if engine is None else engine.seen_rps,
    )


def _first(*found: _Number | None) -> _Number | None:
    return next((one for one in found if one is not None), None)


def _given_cost(given: ReplicaOptions) -> tuple[IterationCost, tuple[str, ...]]:
    """Return the given cost, and a note on the parts that are only usual values."""
    if given.iteration_ms is None or given.prompt_token_ms is None:
        absent = "--iteration-ms" if given.iteration_ms is None else "--prompt-token-ms"
        missing(f"{absent}, the other part of the cost,", "--on qwen3-32b/2xh100 if not known")
    usual, unknown = Ratios(), []
    sequence_ms, context_token_ms = given.sequence_ms, given.context_token_ms
    if sequence_ms is None:
        sequence_ms = usual.sequence_per_prompt * given.prompt_token_ms
        unknown.append(
            f"--sequence-ms: {usual.sequence_per_prompt:g} times that of a prompt token is usual"
        )
    if context_token_ms is None:
        context_token_ms = usual.context_per_prompt * given.prompt_token_ms
        unknown.append(
            f"--context-token-ms: {usual.context_per_prompt:g} times that of a prompt token is "
            "usual"
        )
    for name, value in (
        ("--iteration-ms", given.iteration_ms),
        ("--prompt-token-ms", given.prompt_token_ms),
        ("--sequence-ms", sequence_ms),
        ("--context-token-ms", context_token_ms),
    ):
        require(0 <= value < 1e6, f"{name} must be from 0 to 1e6", f"{value:g}", "Measure it")
    cost = IterationCost(
        fixed_s=given.iteration_ms / MS,
        prompt_token_s=given.prompt_token_ms / MS,
        sequence_s=sequence_ms / MS,
        context_token_s=context_token_ms / MS,
    )
    return cost, tuple(unknown)
