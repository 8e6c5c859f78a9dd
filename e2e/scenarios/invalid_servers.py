"""Specs with an invalid runtime, telemetry or warm-up; none may be stored."""

from __future__ import annotations

from typing import Any

from scenarios.spec_cases import (
    ABSENT,
    MATCH,
    InvalidSpec,
    bounds,
    duration_bounds,
    wrong_enum,
)

CUSTOM: dict[str, Any] = {
    "image": "registry.example/server:1",
    "profile": "custom",
    "maxBatchSize": 8,
    "metrics": {
        "inFlight": {"name": "in_flight"},
        "answered": {"name": "answered_total"},
        "runningTime": {"name": "busy_milliseconds_total", "unit": "ms"},
    },
}
"""A server whose metrics are named one by one."""


def _custom(**metrics: Any) -> dict[str, Any]:
    changed = CUSTOM["metrics"] | metrics
    return CUSTOM | {"metrics": {k: v for k, v in changed.items() if v is not ABSENT}}


def _of_metrics(why: str, says: str, **metrics: Any) -> InvalidSpec:
    return InvalidSpec(
        why=why,
        path="spec.runtime",
        value=_custom(**metrics),
        field="spec.runtime.metrics",
        says=says,
    )


def _other(profile: str, warmup: dict[str, Any]) -> dict[str, Any]:
    runtime = {"image": "registry.example/server:1", "profile": profile, "maxBatchSize": 8}
    return {"runtime": runtime, "slo": {"latency": {"target": "1s"}}, "warmup": warmup}


INVALID_SERVERS: tuple[InvalidSpec, ...] = (
    wrong_enum(
        "spec.runtime.profile",
        "tensorrt",
        '"headroom", "triton", "vllm", "sglang", "tgi", "tei", "ray", "mlserver", "torchserve", '
        '"mosec", "trtllm", "llamacpp", "dynamo", "custom"',
        "'dynamo' or 'custom'",
    ),
    InvalidSpec(
        why="another server without its batch size",
        path="spec.runtime.profile",
        value="vllm",
        field="spec.runtime.maxBatchSize",
        says="runtime.maxBatchSize must be set for every profile except headroom",
    ),
    InvalidSpec(
        why="a batch size that the server says itself",
        path="spec.runtime.maxBatchSize",
        value=8,
        says="runtime.maxBatchSize must be set for every profile except headroom",
    ),
    *bounds("spec.runtime.maxBatchSize", 0, "or equal to 1", 70000, "or equal to 65536"),
    *bounds("spec.runtime.instances", 0, "or equal to 1", 257, "or equal to 256"),
    *bounds("spec.runtime.metricsPort", 0, "or equal to 1", 70000, "or equal to 65535"),
    InvalidSpec(
        why="a warm-up by the operator without what it sends",
        path="spec",
        value=_other("mosec", {"sender": "Operator"}),
        field="spec.warmup.request",
        says="warmup.request must be set where warmup.sender is Operator",
    ),
    InvalidSpec(
        why="a warm-up request that is never sent",
        path="spec",
        value=_other("mosec", {"sender": "Server", "request": {"path": "/"}}),
        field="spec.warmup.request",
        says="warmup.sender must be Operator, or unset, where warmup.request is set",
    ),
    InvalidSpec(
        why="a warm-up of our own server by the operator",
        path="spec.warmup",
        value={"request": {"path": "/"}},
        field="spec.warmup.sender",
        says="warmup.sender must be Server and warmup.request must not be set where",
    ),
    InvalidSpec(
        why="a warm-up request to elsewhere",
        path="spec",
        value=_other("mosec", {"request": {"path": "http://elsewhere/"}}),
        field="spec.warmup.request.path",
        says="should match",
        parser_says=MATCH,
    ),
    InvalidSpec(
        why="a warm-up request without a path",
        path="spec",
        value=_other("mosec", {"request": {"body": "{}"}}),
        field="spec.warmup.request.path",
        says="Required value",
        parser_says="is required",
    ),
    wrong_enum("spec.warmup.sender", "Kubelet", '"Server", "Operator"', "'Server' or 'Operator'"),
    InvalidSpec(
        why="a custom server without metrics",
        path="spec.runtime",
        value={key: value for key, value in CUSTOM.items() if key != "metrics"},
        field="spec.runtime.metrics",
        says="runtime.metrics must be set where runtime.profile is custom, and only there",
    ),
    InvalidSpec(
        why="metrics of a server that is known",
        path="spec.runtime",
        value=CUSTOM | {"profile": "vllm"},
        field="spec.runtime.metrics",
        says="runtime.metrics must be set where runtime.profile is custom, and only there",
    ),
    _of_metrics("no queue", "metrics must set inFlight, or waiting", inFlight=ABSENT),
    _of_metrics("no ends of requests", "metrics must set answered or latency", answered=ABSENT),
    _of_metrics(
        "nothing of what runs",
        "metrics must set inFlight, or waiting",
        inFlight=ABSENT,
        waiting={"name": "waiting"},
        runningTime=ABSENT,
        batches={"name": "batches_total"},
        batchTime={"name": "busy_seconds_total"},
    ),
    _of_metrics("no cost", "metrics must set runningTime, or batches", runningTime=ABSENT),
    _of_metrics(
        "batches without their time",
        "metrics must set runningTime, or batches",
        runningTime=ABSENT,
        batches={"name": "batches_total"},
    ),
    InvalidSpec(
        why="a metric with a query for a name",
        path="spec.runtime",
        value=_custom(inFlight={"name": "rate(in_flight[1m])"}),
        field="spec.runtime.metrics.inFlight.name",
        says="should match",
        parser_says=MATCH,
    ),
    InvalidSpec(
        why="a label without values",
        path="spec.runtime",
        value=_custom(inFlight={"name": "in_flight", "labels": [{"label": "a", "values": []}]}),
        field="spec.runtime.metrics.inFlight.labels[0].values",
        says="should have at least 1 items",
        parser_says="should have at least 1 item",
    ),
    InvalidSpec(
        why="a metrics path elsewhere",
        path="spec.runtime",
        value=_custom(path="http://elsewhere/metrics"),
        field="spec.runtime.metrics.path",
        says="should match",
        parser_says=MATCH,
    ),
    InvalidSpec(
        why="a Prometheus that is not asked",
        path="spec.telemetry",
        value={"prometheus": "default"},
        field="spec.telemetry.prometheus",
        says="telemetry.source must be Prometheus where telemetry.prometheus is set",
    ),
    InvalidSpec(
        why="a Prometheus by its address",
        path="spec.telemetry",
        value={"source": "Prometheus", "prometheus": "http://prometheus:9090"},
        field="spec.telemetry.prometheus",
        says="should match",
        parser_says=MATCH,
    ),
    wrong_enum(
        "spec.telemetry.source", "Datadog", '"Pods", "Prometheus"', "'Pods' or 'Prometheus'"
    ),
    *duration_bounds("spec.telemetry.staleAfter", "2s", "100s", "1s", "2m"),
)
