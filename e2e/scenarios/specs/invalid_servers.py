"""Specs with an invalid runtime, telemetry or warm-up; none may be stored."""

from __future__ import annotations

from typing import Any

from scenarios.specs.spec_cases import (
    ABSENT,
    InvalidSpec,
    bounds,
    duration_bounds,
    missing,
    refused,
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
    return refused(why, "spec.runtime", _custom(**metrics), says, field="spec.runtime.metrics")


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
    refused(
        "another server without its batch size",
        "spec.runtime.profile",
        "vllm",
        "whose server reports it; got none for vllm",
        field="spec.runtime.maxBatchSize",
    ),
    refused(
        "a batch size that the server says itself",
        "spec.runtime.maxBatchSize",
        8,
        "runtime.maxBatchSize must be set for every profile except headroom",
    ),
    *bounds("spec.runtime.maxBatchSize", 0, "or equal to 1", 70000, "or equal to 65536"),
    *bounds("spec.runtime.instances", 0, "or equal to 1", 257, "or equal to 256"),
    *bounds("spec.runtime.metricsPort", 0, "or equal to 1", 70000, "or equal to 65535"),
    refused(
        "a warm-up by the operator without what it sends",
        "spec",
        _other("mosec", {"sender": "Operator"}),
        "warmup.request must be set where warmup.sender is Operator",
        field="spec.warmup.request",
    ),
    refused(
        "a warm-up request that is never sent",
        "spec",
        _other("mosec", {"sender": "Server", "request": {"path": "/"}}),
        "warmup.sender must be Operator, or unset, where warmup.request is set",
        field="spec.warmup.request",
    ),
    refused(
        "a warm-up of our own server by the operator",
        "spec.warmup",
        {"request": {"path": "/"}},
        "warmup.sender must be Server and warmup.request must not be set where",
        field="spec.warmup.sender",
    ),
    refused(
        "a warm-up request to elsewhere",
        "spec",
        _other("mosec", {"request": {"path": "http://elsewhere/"}}),
        "must be a path that starts with /",
        field="spec.warmup.request.path",
    ),
    missing(
        "a warm-up request without a path",
        "spec",
        _other("mosec", {"request": {"body": "{}"}}),
        field="spec.warmup.request.path",
    ),
    wrong_enum("spec.warmup.sender", "Kubelet", '"Server", "Operator"', "'Server' or 'Operator'"),
    refused(
        "a custom server without metrics",
        "spec.runtime",
        {key: value for key, value in CUSTOM.items() if key != "metrics"},
        "runtime.metrics must be set where runtime.profile is custom, and only there",
        field="spec.runtime.metrics",
    ),
    refused(
        "metrics of a server that is known",
        "spec.runtime",
        CUSTOM | {"profile": "vllm"},
        "runtime.metrics must be set where runtime.profile is custom, and only there",
        field="spec.runtime.metrics",
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
    refused(
        "a metric with a query for a name",
        "spec.runtime",
        _custom(inFlight={"name": "rate(in_flight[1m])"}),
        "must be the name of a metric without its labels",
        field="spec.runtime.metrics.inFlight.name",
    ),
    refused(
        "a label without values",
        "spec.runtime",
        _custom(inFlight={"name": "in_flight", "labels": [{"label": "a", "values": []}]}),
        "should have at least 1 items",
        "must have at least 1 item",
        field="spec.runtime.metrics.inFlight.labels[0].values",
    ),
    refused(
        "a metrics path elsewhere",
        "spec.runtime",
        _custom(path="http://elsewhere/metrics"),
        "must be a path that starts with /",
        field="spec.runtime.metrics.path",
    ),
    refused(
        "a Prometheus that is not asked",
        "spec.telemetry",
        {"prometheus": "default"},
        "telemetry.source must be Prometheus where telemetry.prometheus is set",
        field="spec.telemetry.prometheus",
    ),
    refused(
        "a Prometheus by its address",
        "spec.telemetry",
        {"source": "Prometheus", "prometheus": "http://prometheus:9090"},
        "must be a name of lower-case letters, digits and -",
        field="spec.telemetry.prometheus",
    ),
    wrong_enum(
        "spec.telemetry.source", "Datadog", '"Pods", "Prometheus"', "'Pods' or 'Prometheus'"
    ),
    *duration_bounds("spec.telemetry.staleAfter", "2s", "100s", "1s", "2m"),
)
