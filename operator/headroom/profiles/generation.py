"""The metrics of a server that generates tokens; what it does not expose is empty.

A quantity is known only where the page has all of its metrics: half of a sum is no number.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from headroom.profiles.quantities import Histogram, Quantity


@dataclass(frozen=True, slots=True, kw_only=True)
class CostMetrics:
    """Sums over iterations of products of features: the labels of a series name the features."""

    xx: str
    """X'X, with the labels `row` and `column`; its upper triangle suffices."""
    xy: str
    """X'y in seconds, with the label `row`."""
    row: str = "row"
    column: str = "column"
    features: tuple[str, ...] = ("1", "P", "D", "KV", "X")
    """Values of these labels, in the order of the terms of `IterationCost`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class InfoLabels:
    """A series whose labels state the size of the KV memory; its value says nothing."""

    metric: str
    tokens: str
    """Label with the tokens that fit."""
    blocks: str
    """Label with the number of blocks, where `tokens` is absent."""
    block_tokens: str
    """Label with the tokens of a block."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GenerationMetrics:
    """Metrics in which a server reports the fields of `values.tokens.GenerationSample`, by name."""

    iterations: Quantity = ()
    engine_seconds: Quantity = ()
    idle_seconds: Quantity = ()
    """Counter: seconds without any work; the rest is engine time where `engine_seconds` lacks."""
    computed_prompt_tokens: Quantity = ()
    cached_prompt_tokens: Quantity = ()
    answered_computed_tokens: Quantity = ()
    """Like the computed ones, per class, of prompts whose first token was generated: read in place
    of them where a class is left out."""
    answered_cached_tokens: Quantity = ()
    generated_tokens: Quantity = ()
    sequence_steps: Quantity = ()
    sequence_seconds: Quantity = ()
    prompt_seconds: Quantity = ()
    timed_prompts: Quantity = ()
    preemptions: Quantity = ()
    drafts: Quantity = ()
    accepted_tokens: Quantity = ()
    waiting_tokens: Quantity = ()
    context_tokens: Quantity = ()

    kv_share: Quantity = ()
    """Gauge, 0..1; several engines of one server are averaged."""
    kv_used: Quantity = ()
    """Gauge: blocks or tokens that running sequences use; with `kv_all` instead of `kv_share`."""
    kv_all: Quantity = ()
    """Gauge: all blocks or tokens."""
    kv_block_tokens: Quantity = ()
    """Gauge: tokens of one of `kv_all`; () where these are tokens."""
    kv_info: InfoLabels | None = None
    sequences: Quantity = ()
    """Gauge: sequences that may run at once."""
    iteration_tokens: Quantity = ()
    """Gauge: tokens that an iteration may compute."""

    prompt_lengths: Histogram | None = None
    output_lengths: Histogram | None = None
    cost: CostMetrics | None = None

    silent: tuple[str, ...] = ()
    """Consequences of what the server does not expose, one sentence each."""

    @property
    def quantities(self) -> dict[str, Quantity]:
        """All quantities by field name."""
        return {name: getattr(self, name) for name in GENERATION_QUANTITIES}

    def counter_names(self) -> Iterator[str]:
        """Yield the names of all counters."""
        for name in (*COUNTED, "idle_seconds"):
            yield from (metric.name for metric in getattr(self, name))
        for one in (self.prompt_lengths, self.output_lengths):
            if one is not None:
                yield from (f"{one.name}_bucket", f"{one.name}_sum")
        if self.cost is not None:
            yield from (self.cost.xx, self.cost.xy)

    def metric_names(self) -> Iterator[str]:
        """Yield the names of all metrics that are read."""
        yield from self.counter_names()
        for quantity in self.quantities.values():
            yield from (metric.name for metric in quantity)
        if self.kv_info is not None:
            yield self.kv_info.metric


COUNTED = (
    *("iterations", "engine_seconds", "computed_prompt_tokens", "cached_prompt_tokens"),
    *("generated_tokens", "sequence_steps", "sequence_seconds", "preemptions", "drafts"),
    *("accepted_tokens", "prompt_seconds", "timed_prompts"),
)
"""Counters of `GenerationMetrics` that a sample has by the same name."""
GAUGES = ("waiting_tokens", "context_tokens")
"""Gauges that a sample has by the same name."""
_LIMITS = (
    *(
        "idle_seconds",
        "kv_share",
        "kv_used",
        "kv_all",
        "kv_block_tokens",
        "sequences",
        "iteration_tokens",
    ),
)
GENERATION_QUANTITIES = (*COUNTED, *GAUGES, *_LIMITS)
