"""Specs with invalid scaling: bounds, windows, rates, rollouts, modes; none may be stored."""

from __future__ import annotations

from scenarios.specs.spec_cases import (
    MINIMAL,
    InvalidSpec,
    bounds,
    duration_bounds,
    missing,
    refused,
    wrong_enum,
)

INVALID_SCALING: tuple[InvalidSpec, ...] = (
    *(
        refused(
            f"a rollout that replaces nothing: {surge}, {unavailable}",
            "spec.rollout",
            {"maxSurge": surge, "maxUnavailable": unavailable},
            "rollout.maxSurge and rollout.maxUnavailable must not both be 0",
            field="spec.rollout.maxUnavailable",
        )
        for surge, unavailable in ((0, 0), ("0%", 0), (0, "0%"))
    ),
    refused(
        "a share of more than all replicas",
        "spec.rollout.maxSurge",
        "101%",
        "must be a number from 0 to 1000, or a share of the replicas",
    ),
    refused(
        "a surge of too many replicas",
        "spec.rollout.maxSurge",
        1001,
        "should be less than or equal to 1000",
        "must be a number from 0 to 1000, or a share of the replicas",
    ),
    refused(
        "External without replicas",
        "spec.scaling",
        {"mode": "External"},
        "replicas must be set where scaling.mode is External",
        field="spec.replicas",
    ),
    refused(
        "replicas without External",
        "spec.replicas",
        2,
        "replicas must be set where scaling.mode is External",
    ),
    refused(
        "replicas above the bounds",
        "spec",
        MINIMAL["spec"] | {"scaling": {"mode": "External"}, "replicas": 21},
        "replicas must be from scaling.minReplicas to scaling.maxReplicas",
        field="spec.replicas",
    ),
    refused(
        "replicas below the bounds",
        "spec",
        MINIMAL["spec"] | {"scaling": {"mode": "External", "minReplicas": 2}, "replicas": 1},
        "replicas must be from scaling.minReplicas to scaling.maxReplicas",
        field="spec.replicas",
    ),
    *bounds("spec.replicas", -1, "or equal to 0", 1001, "or equal to 1000"),
    wrong_enum(
        "spec.scaling.mode",
        "Manual",
        '"Auto", "Recommend", "External"',
        "'Auto', 'Recommend' or 'External'",
    ),
    *bounds("spec.scaling.minReplicas", -1, "or equal to 0", 10**6, "or equal to 1000"),
    refused(
        "no replica without a gateway",
        "spec.scaling.minReplicas",
        0,
        "scaling.minReplicas must be at least 1 unless routing.mode is Gateway",
    ),
    *duration_bounds("spec.scaling.scaleToZero.idleTimeout", "10s", "24h", "9s", "25h"),
    *bounds("spec.scaling.maxReplicas", 0, "or equal to 1", 10**6, "or equal to 1000"),
    *bounds("spec.scaling.priority", -1001, "or equal to -1000", 1001, "or equal to 1000"),
    refused(
        "minimum above maximum",
        "spec.scaling",
        {"minReplicas": 5, "maxReplicas": 4},
        "scaling.minReplicas must be at most scaling.maxReplicas",
        field="spec.scaling.minReplicas",
    ),
    refused(
        "minimum above the default maximum",
        "spec.scaling.minReplicas",
        21,
        "scaling.minReplicas must be at most scaling.maxReplicas",
    ),
    refused(
        "text for a number",
        "spec.scaling.minReplicas",
        "3",
        "must be of type integer",
        "must be a whole number",
    ),
    *duration_bounds("spec.scaling.scaleUp.stabilizationWindow", "0s", "1h", "61m"),
    *duration_bounds("spec.scaling.scaleDown.stabilizationWindow", "0s", "1h", "1h1s"),
    refused(
        "rate without an amount",
        "spec.scaling.scaleUp.rate",
        {"period": "1m"},
        "rate must set replicas, percent or both",
    ),
    missing(
        "rate without a period",
        "spec.scaling.scaleDown.rate",
        {"replicas": 1},
        field="spec.scaling.scaleDown.rate.period",
    ),
)
