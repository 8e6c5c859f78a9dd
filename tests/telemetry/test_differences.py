"""A quantity that is the difference of two counters is bounded below zero as it is above."""

from __future__ import annotations

import pytest

from headroom.profiles.sglang import SGLANG
from headroom.profiles.trtllm import TRTLLM
from headroom.profiles.values import QUANTITIES
from headroom.telemetry.bounds.generation_bounds import check_generation
from headroom.telemetry.bounds.physical_bounds import check_quantities
from headroom.telemetry.errors import InvalidMetric


def test_seconds_of_execution_are_bounded_on_both_sides() -> None:
    """SGLang's are those of whole requests minus those in the queue, whose sums differ a little."""

    def values(seconds: float) -> list[float | None]:
        return [seconds if name == "running_seconds" else None for name in QUANTITIES]

    check_quantities(SGLANG, values(-5.0))
    for poisoned in (-1e308, 1e308, float("nan")):
        with pytest.raises(InvalidMetric, match="must be at most"):
            check_quantities(SGLANG, values(poisoned))


def test_computed_tokens_are_bounded_on_both_sides() -> None:
    """TensorRT-LLM's are those of prompts minus those that were cached."""
    assert TRTLLM.generation is not None
    check_generation(TRTLLM.generation, {"computed_prompt_tokens": -5.0})
    for poisoned in (-1e308, 1e308, float("nan")):
        with pytest.raises(InvalidMetric, match="must be at most"):
            check_generation(TRTLLM.generation, {"computed_prompt_tokens": poisoned})
