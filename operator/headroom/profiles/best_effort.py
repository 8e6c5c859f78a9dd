"""Leaves best-effort requests out of a server's metrics, where a label names them. Pure.

A server that serves a class only with what the others leave (seats, memory, time of iterations)
names it in a label. Without these series everything that is read is the load of the others:
arrivals, requests in flight, misses, latencies and lengths. What the engine does (iterations,
tokens, memory) is read whole: the cost of an iteration follows from all of its work.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from functools import lru_cache
from typing import Any

from headroom.profiles.generation import GenerationMetrics
from headroom.profiles.quantities import Histogram, Label, Quantity, lacking
from headroom.profiles.values import Profile

_QUANTITIES = ("arrived", "retried", "missed", "waiting", "running", "running_seconds")


def without_best_effort(profile: Profile, classes: Iterable[str]) -> Profile:
    """Return the profile that leaves out these classes, where the server says that they fill."""
    names = tuple(sorted(classes))
    return _without(profile, names) if names and profile.best_effort_label else profile


@lru_cache(maxsize=256)
def _without(profile: Profile, classes: tuple[str, ...]) -> Profile:
    others = lacking(profile.best_effort_label, "|".join(classes))
    changed: dict[str, Any] = {
        name: _quantity(getattr(profile, name), others) for name in _QUANTITIES
    }
    for name, one in profile.histograms.items():
        changed[name] = _histogram(one, others)
    if profile.generation is not None:
        changed["generation"] = _generation(profile.generation, others)
    return replace(profile, **changed)


def _generation(metrics: GenerationMetrics, others: Label) -> GenerationMetrics:
    """Return what prompts are learned from: tokens that wait are not counted per class.

    Preempted best-effort requests say nothing of other prompts, each of which is counted once.
    """
    return replace(
        metrics,
        computed_prompt_tokens=_quantity(metrics.answered_computed_tokens, others),
        cached_prompt_tokens=_quantity(metrics.answered_cached_tokens, others),
        waiting_tokens=(),
        preemptions=(),
        prompt_lengths=_histogram(metrics.prompt_lengths, others),
        output_lengths=_histogram(metrics.output_lengths, others),
    )


def _quantity(quantity: Quantity, others: Label) -> Quantity:
    return tuple(replace(one, labels=(*one.labels, others)) for one in quantity)


def _histogram(histogram: Histogram | None, others: Label) -> Histogram | None:
    return None if histogram is None else replace(histogram, labels=(*histogram.labels, others))
