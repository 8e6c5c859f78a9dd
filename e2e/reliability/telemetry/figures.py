"""The numbers of one page of generated telemetry, and its text."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

FIXED_S, PER_ITEM_S, MAX_BATCH = 0.15, 0.06, 4
FULL_BATCH_RPS = MAX_BATCH / (FIXED_S + PER_ITEM_S * MAX_BATCH)
"""10.26: what a replica does in full batches."""
MODEL = "resnet"
BOUNDS = ("0.1", "0.25", "0.5", "1", "2", "5", "10", "20", "60", "+Inf")
REQUEST_BOUND = 2
"""Requests take between 0.25 s and 0.5 s."""
NUMBERS = (
    "headroom_requests_received_total",
    "headroom_requests_total",
    "headroom_requests_waiting",
    "headroom_requests_running",
    "headroom_max_batch_size",
    "headroom_cost_fixed_seconds",
    "headroom_cost_per_item_seconds",
    "headroom_execution_duration_seconds_count",
    "headroom_execution_duration_seconds_sum",
    "headroom_batch_size_sum",
)
"""The order of the lines; those without which there is no sample come first."""


@dataclass(slots=True)
class Figures:
    """Figures of a page."""

    numbers: dict[str, float]
    buckets: list[float]
    failed: float | None = None
    """Requests with another outcome than ok; None has no such series."""

    @classmethod
    def of(cls, served: int) -> Figures:
        """Return those of a server that answered this many one by one, and has none in flight."""
        return cls(
            numbers=dict(
                zip(
                    NUMBERS,
                    (
                        *(float(served), float(served), 0.0, 0.0),
                        *(float(MAX_BATCH), FIXED_S, PER_ITEM_S),
                        *(float(served), round(served * 0.21, 6), float(served)),
                    ),
                    strict=True,
                )
            ),
            buckets=[
                float(served) if place >= REQUEST_BOUND else 0.0 for place in range(len(BOUNDS))
            ],
        )

    def text(self, model: str = MODEL) -> str:
        """Return the page."""
        return "".join(f"{line}\n" for line in self._lines(f'model="{model}"'))

    def _lines(self, label: str) -> Iterator[str]:
        for name, value in self.numbers.items():
            outcome = ',outcome="ok"' if name == "headroom_requests_total" else ""
            yield f"{name}{{{label}{outcome}}} {_shown(value)}"
        if self.failed is not None:
            yield f'headroom_requests_total{{{label},outcome="failed"}} {_shown(self.failed)}'
        bucket = f"headroom_request_duration_seconds_bucket{{{label},le="
        for bound, count in zip(BOUNDS, self.buckets, strict=True):
            yield f'{bucket}"{bound}"}} {_shown(count)}'


def _shown(value: float) -> str:
    return str(int(value)) if value.is_integer() and abs(value) < 1e15 else repr(value)
