"""`slo` with promises on tokens: required ones, and the decision's input."""

from __future__ import annotations

import pytest

from headroom.api.invalid_spec import InvalidSpec
from headroom.api.service_status.generation_status import generation_status
from headroom.scaling.values.token_decision import (
    GenerationDecision,
    GenerationMeasurement,
    Identification,
    TokenMeasurement,
)
from headroom.scaling.values.tokens import Binding, Target, TokenTargets
from support.service_world import service

RUNTIME = {"image": "registry.example/vllm:1", "profile": "vllm", "maxBatchSize": 8}
FIRST = {"timeToFirstToken": {"percentile": 90, "target": "2s"}}
TOKEN = {"timePerOutputToken": {"target": "50ms"}}
WHOLE = {"latency": {"percentile": 99, "target": "20s"}}


@pytest.mark.parametrize(
    ("slo", "targets", "bound_s"),
    [
        (WHOLE, None, 20.0),
        (FIRST, TokenTargets(first_token=Target(percentile=0.9, seconds=2.0)), 600.0),
        # 2 s and 1000 tokens of 50 ms
        (
            FIRST | TOKEN,
            TokenTargets(
                first_token=Target(percentile=0.9, seconds=2.0),
                output_token=Target(percentile=0.95, seconds=0.05),
            ),
            52.0,
        ),
        (
            TOKEN | WHOLE,
            TokenTargets(
                output_token=Target(percentile=0.95, seconds=0.05),
                latency=Target(percentile=0.99, seconds=20.0),
            ),
            20.0,
        ),
        ({"timePerOutputToken": {"target": "2s"}}, None, 600.0),
    ],
)
def test_policy_has_the_promises_of_the_spec(
    slo: dict[str, object], targets: TokenTargets | None, bound_s: float
) -> None:
    policy = service(spec__runtime=RUNTIME, spec__slo=slo).to_policy()
    if targets is not None or "latency" in slo:
        assert policy.token_targets == targets
    assert policy.latency_target_s == bound_s


def test_slo_without_any_promise_is_refused() -> None:
    with pytest.raises(InvalidSpec, match="slo must set latency, timeToFirstToken or"):
        service(spec__runtime=RUNTIME, spec__slo={"queueDepth": 4})


def test_status_says_what_is_not_known_and_guesses_nothing() -> None:
    decision = GenerationDecision(
        identification=Identification(known=False, missing=("iterations are not exposed",)),
        first_token=TokenMeasurement(
            target=Target(percentile=0.95, seconds=2.0),
            measured_s=0.31,
            late_share=0.0,
            expected_s=None,
            floor_s=None,
        ),
    )
    found = generation_status(decision, GenerationMeasurement(kv_used_share=0.88))
    assert found is not None
    assert found.manifest() == {
        "sizedBy": "Measurement",
        "costSource": "",
        "unknown": ["iterations are not exposed"],
        "memoryShare": 0.88,
        "promises": [
            {"name": "TimeToFirstToken", "target": "2s", "measured": "310ms", "lateShare": 0.0}
        ],
    }
    assert found.sentence == "KV memory 88%"
    assert generation_status(None, GenerationMeasurement(kv_used_share=0.88)) is None


def test_status_names_what_binds() -> None:
    decision = GenerationDecision(
        identification=Identification(known=True, source="engine seconds per iteration"),
        binding=Binding.MEMORY,
        capacity_rps=1.44,
        output_token=TokenMeasurement(
            target=Target(percentile=0.95, seconds=0.05),
            measured_s=None,
            late_share=None,
            expected_s=float("inf"),
            floor_s=0.02,
        ),
    )
    found = generation_status(decision, GenerationMeasurement(generated_tokens_per_s=1200.0))
    assert found is not None
    assert found.sentence == "Memory bounds a replica at 1.44/s, 1200 tokens/s"
    (promise,) = found.promises
    assert (promise.expected, promise.floor, promise.measured) == ("unbounded", "20ms", None)
