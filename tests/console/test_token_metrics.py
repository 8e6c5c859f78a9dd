"""Metrics of token SLOs."""

from __future__ import annotations

from headroom.ops.operator_metrics import OperatorMetrics
from headroom.scaling.generation.promises.class_judgement import (
    ClassJudgement,
    ClassMeasurement,
    ClassState,
)
from headroom.scaling.generation.promises.classes import SERVICE, ClassPromise
from headroom.scaling.generation.promises.token_promises import Measured
from headroom.scaling.values.tokens import Binding, Target, TokenTargets
from support.service_world import service

RUNTIME = {"image": "registry.example/vllm:1", "profile": "vllm", "maxBatchSize": 8}
PROMISED = service(
    spec__runtime=RUNTIME,
    spec__slo={"latency": {"target": "5s"}, "timeToFirstToken": {"target": "500ms"}},
)
PLAIN = service(spec__runtime=RUNTIME)
OWNER = 'inferenceservice="resnet50",namespace="vision"'


def series(instruments: OperatorMetrics) -> list[str]:
    lines = instruments.page().decode().splitlines()
    return [line for line in lines if line.startswith("headroom_service_token")]


def test_token_slo_shows_latency_target_and_capacity_factor() -> None:
    instruments = OperatorMetrics()
    instruments.tokens_measured(PROMISED, {"timeToFirstToken": 0.25}, 1.5)
    labels = f'{{{OWNER},slo="timeToFirstToken"}}'
    assert series(instruments) == [
        f"headroom_service_token_latency_seconds{labels} 0.25",
        f"headroom_service_token_latency_target_seconds{labels} 0.5",
        f"headroom_service_token_slo_capacity_factor{{{OWNER}}} 1.5",
    ]
    instruments.tokens_measured(PROMISED, {"timeToFirstToken": None}, 1.5)
    assert not any("token_latency_seconds" in line for line in series(instruments)), "not zero"
    instruments.tokens_measured(PLAIN, {}, 1.0)
    assert series(instruments) == []


def test_token_metrics_are_removed_with_the_service() -> None:
    instruments = OperatorMetrics()
    instruments.tokens_measured(PROMISED, {"timeToFirstToken": 0.25}, 1.5)
    instruments.forgotten("vision", "resnet50")
    assert series(instruments) == []


def test_classes_show_what_they_attained_until_they_are_gone() -> None:
    target = Target(percentile=0.95, seconds=0.5)
    found = Measured(target=target, value_s=0.6, late_share=0.08, requests=90.0)
    classes = tuple(
        ClassMeasurement(
            promise=ClassPromise(name=name, targets=TokenTargets(first_token=target)),
            window={Binding.TIME_TO_FIRST_TOKEN: found},
        )
        for name in (SERVICE, "chat")
    )
    instruments = OperatorMetrics()

    def shown() -> list[str]:
        lines = instruments.page().decode().splitlines()
        return [line for line in lines if line.startswith("headroom_service_class")]

    judgement = ClassJudgement(classes=classes)
    instruments.classes_measured(PROMISED, ClassState(judgement=judgement))
    labels = f'{{{OWNER},class="chat"}}'
    assert shown() == [
        f"headroom_service_class_attainment_ratio{labels} 0.92",
        f"headroom_service_class_target_used_ratio{labels} 1.2",
    ]
    instruments.classes_measured(PLAIN, ClassState())
    assert shown() == []
