"""Sums over iterations from which their cost is fitted exactly, by least squares.

The features of an iteration are 1, P (prompt tokens computed), D (decoding sequences), KV (tokens
in memory) and X (prompt tokens times half their number: attention within prompts). The counters
hold X'X and X'y, y in seconds, so any two pages give the exact regression of what ran between.
"""

from __future__ import annotations

from typing import Any, Protocol

FEATURES = ("1", "P", "D", "KV", "X")


class Details(Protocol):
    """One iteration, as vLLM's scheduler describes it."""

    num_ctx_requests: int
    num_ctx_tokens: int
    num_generation_requests: int
    elapsed_ms: float
    is_dummy: bool


def features_of(details: Details, kv_tokens: float) -> tuple[float, ...]:
    """Return the features of an iteration.

    Chunks of prompts count as equally long and without tokens before them: vLLM does not say.
    """
    prompts, tokens = details.num_ctx_requests, float(details.num_ctx_tokens)
    products = tokens * tokens / (2.0 * prompts) if prompts else 0.0
    return 1.0, tokens, float(details.num_generation_requests), kv_tokens, products


class CostCounters:
    """The counters of one engine, with a child for each product."""

    def __init__(self, xx: Any, xy: Any, labels: tuple[str, ...]) -> None:
        """`xx` and `xy` are counters of prometheus_client, with `labels` first."""
        pairs = [(row, column) for row in range(5) for column in range(row, 5)]
        self._xx = [
            (row, column, xx.labels(*labels, FEATURES[row], FEATURES[column]))
            for row, column in pairs
        ]
        self._xy = [xy.labels(*labels, name) for name in FEATURES]

    def add(self, details: Details, kv_tokens: float) -> None:
        """Count an iteration; one that only keeps other engines company has no work."""
        if details.is_dummy or not details.elapsed_ms > 0.0:
            return
        features = features_of(details, kv_tokens)
        seconds = details.elapsed_ms / 1000.0
        for row, column, child in self._xx:
            child.inc(features[row] * features[column])
        for feature, child in zip(features, self._xy, strict=True):
            child.inc(feature * seconds)
