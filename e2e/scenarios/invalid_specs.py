"""Specs that must not be stored: each breaks one rule, and the error names field and rule.

The API server and the operator's own parser are held to the same table.
"""

from __future__ import annotations

from scenarios.invalid_routing import INVALID_ROUTING
from scenarios.invalid_runtime import INVALID_RUNTIME
from scenarios.invalid_scaling import INVALID_SCALING
from scenarios.invalid_servers import INVALID_SERVERS
from scenarios.spec_cases import (
    ABSENT,
    MATCH,
    InvalidSpec,
    bounds,
    duration_bounds,
    no_duration,
    too_many,
    wrong_enum,
)

INVALID_SPECS: tuple[InvalidSpec, ...] = (
    *INVALID_SCALING,
    *INVALID_ROUTING,
    *INVALID_RUNTIME,
    *INVALID_SERVERS,
    InvalidSpec(
        why="no spec", path="spec", value=ABSENT, says="Required value", parser_says="must be"
    ),
    InvalidSpec(
        why="no slo",
        path="spec.slo",
        value=ABSENT,
        says="Required value",
        parser_says="is required",
    ),
    InvalidSpec(
        why="no target",
        path="spec.slo.latency.target",
        value=ABSENT,
        says="Required value",
        parser_says="is required",
    ),
    wrong_enum(
        "spec.scaling.mode",
        "Manual",
        '"Auto", "Recommend", "External"',
        "'Auto', 'Recommend' or 'External'",
    ),
    wrong_enum("spec.slo.latency.percentile", 50, '"90", "95", "99"', "90, 95 or 99"),
    wrong_enum("spec.slo.latency.percentile", 0, '"90", "95", "99"', "90, 95 or 99"),
    *bounds("spec.scaling.minReplicas", -1, "or equal to 0", 10**6, "or equal to 1000"),
    InvalidSpec(
        why="no replica without a gateway",
        path="spec.scaling.minReplicas",
        value=0,
        says="scaling.minReplicas must be at least 1 unless routing.mode is Gateway",
    ),
    *duration_bounds("spec.scaling.scaleToZero.idleTimeout", "10s", "24h", "9s", "25h"),
    *bounds("spec.scaling.maxReplicas", 0, "or equal to 1", 10**6, "or equal to 1000"),
    *bounds("spec.scaling.priority", -1001, "or equal to -1000", 1001, "or equal to 1000"),
    *bounds("spec.accelerator.count", -1, "or equal to 0", 65, "or equal to 64"),
    *bounds("spec.slo.queueDepth", 0, "or equal to 1", 10**6, "or equal to 100000"),
    *(
        InvalidSpec(
            why=f"ceiling {ceiling}",
            path="spec.slo.utilizationCeiling",
            value=ceiling,
            says="slo.utilizationCeiling must be from 0.01 to 0.95",
        )
        for ceiling in (-0.5, 0, 1e-310, 0.009, 0.951, 1, 80)
    ),
    InvalidSpec(
        why="minimum above maximum",
        path="spec.scaling",
        value={"minReplicas": 5, "maxReplicas": 4},
        field="spec.scaling.minReplicas",
        says="scaling.minReplicas must be at most scaling.maxReplicas",
    ),
    InvalidSpec(
        why="minimum above the default maximum",
        path="spec.scaling.minReplicas",
        value=21,
        says="scaling.minReplicas must be at most scaling.maxReplicas",
    ),
    InvalidSpec(
        why="text for a number",
        path="spec.scaling.minReplicas",
        value="3",
        says="must be of type integer",
        parser_says="should be a valid integer",
    ),
    *(
        no_duration(text)
        for text in (
            "2 days",
            "-5s",
            "",
            "5",
            "1d",
            "s",
            "1,5s",
            "1.2345s",
            "9999999s",
            "1e3s",
            "5S",
        )
    ),
    InvalidSpec(
        why="a number for a duration",
        path="spec.slo.latency.target",
        value=250,
        says="must be of type string",
        parser_says="numbers with units ms, s, m or h",
    ),
    *duration_bounds("spec.slo.latency.target", "1ms", "10m", "0s", "0.999ms", "10m0.001ms", "1h"),
    *duration_bounds("spec.scaling.scaleUp.stabilizationWindow", "0s", "1h", "61m"),
    *duration_bounds("spec.scaling.scaleDown.stabilizationWindow", "0s", "1h", "1h1s"),
    InvalidSpec(
        why="rate without an amount",
        path="spec.scaling.scaleUp.rate",
        value={"period": "1m"},
        says="rate must set replicas, percent or both",
    ),
    InvalidSpec(
        why="rate without a period",
        path="spec.scaling.scaleDown.rate",
        value={"replicas": 1},
        field="spec.scaling.scaleDown.rate.period",
        says="Required value",
        parser_says="is required",
    ),
    *(
        InvalidSpec(
            why=f"{promise} of a server that does not measure it",
            path="spec",
            value={
                "runtime": {
                    "image": "registry.example/server:1",
                    "profile": "triton",
                    "maxBatchSize": 8,
                },
                "slo": {"latency": {"target": "5s"}, promise: {"target": "500ms"}},
            },
            field=f"spec.slo.{promise}",
            says="runtime.profile must be one of headroom, vllm, sglang",
        )
        for promise in ("timeToFirstToken", "timePerOutputToken")
    ),
    InvalidSpec(
        why="no promise at all",
        path="spec.slo",
        value={"queueDepth": 8},
        field="spec.slo.latency",
        says="slo must set latency, timeToFirstToken or timePerOutputToken",
    ),
    *(
        InvalidSpec(
            why=f"{field} that the operator sets: {key}",
            path=f"spec.commonMetadata.{field}",
            value={key: "x"},
            says=f"keys of commonMetadata.{field} must not begin with headroom.dev/",
        )
        for field, key in (
            ("labels", "headroom.dev/inference-service"),
            ("labels", "app.kubernetes.io/managed-by"),
            ("annotations", "headroom.dev/removed-first"),
        )
    ),
    *(
        InvalidSpec(
            why=f"key of {field} that is no name: {key}",
            path=f"spec.commonMetadata.{field}",
            value={key: "x"},
            says=f"keys of commonMetadata.{field} must be names as Kubernetes has them",
        )
        for field, key in (
            ("labels", "cost center"),
            ("labels", "a/b/c"),
            ("labels", "t" * 64),
            ("annotations", "-x"),
        )
    ),
    InvalidSpec(
        why="label whose value no label can have",
        path="spec.commonMetadata.labels",
        value={"team": "a team"},
        field="spec.commonMetadata.labels.team",
        says="should match",
        parser_says=MATCH,
    ),
    too_many("spec.commonMetadata.labels", 32, {f"l{i}": "x" for i in range(33)}),
    InvalidSpec(
        why="name too long for its children",
        path="metadata.name",
        value="n" * 53,
        field="metadata.name",
        says="metadata.name must have at most 52 characters",
    ),
    InvalidSpec(
        why="name that no Service can have",
        path="metadata.name",
        value="7b.chat",
        field="metadata.name",
        says="metadata.name must have at most 52 characters",
    ),
)
