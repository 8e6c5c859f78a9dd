"""Specs with an invalid SLO: durations, percentiles, objectives; none may be stored."""

from __future__ import annotations

from scenarios.specs.spec_cases import (
    InvalidSpec,
    bounds,
    duration_bounds,
    missing,
    no_duration,
    refused,
    wrong_enum,
)

INVALID_SLO: tuple[InvalidSpec, ...] = (
    missing("no slo", "spec.slo"),
    missing("no target", "spec.slo.latency.target"),
    wrong_enum("spec.slo.latency.percentile", 50, '"90", "95", "99"', "90, 95 or 99"),
    wrong_enum("spec.slo.latency.percentile", 0, '"90", "95", "99"', "90, 95 or 99"),
    *bounds("spec.slo.queueDepth", 0, "or equal to 1", 10**6, "or equal to 100000"),
    *(
        refused(
            f"ceiling {ceiling}",
            "spec.slo.utilizationCeiling",
            ceiling,
            "slo.utilizationCeiling must be a share from 0.01 to 0.95, such as 0.8",
        )
        for ceiling in (-0.5, 0, 1e-310, 0.009, 0.951, 1, 80)
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
    refused(
        "a number for a duration",
        "spec.slo.latency.target",
        250,
        "must be of type string",
        "must be a duration from 1ms to 10m, with units (ms, s, m or h)",
    ),
    *duration_bounds("spec.slo.latency.target", "1ms", "10m", "0s", "0.999ms", "10m0.001ms", "1h"),
    *(
        refused(
            f"{promise} of a server that does not measure it",
            "spec",
            {
                "runtime": {
                    "image": "registry.example/server:1",
                    "profile": "triton",
                    "maxBatchSize": 8,
                },
                "slo": {"latency": {"target": "5s"}, promise: {"target": "500ms"}},
            },
            "runtime.profile must be one of headroom, vllm, sglang",
            field=f"spec.slo.{promise}",
        )
        for promise in ("timeToFirstToken", "timePerOutputToken")
    ),
    refused(
        "no promise at all",
        "spec.slo",
        {"queueDepth": 8},
        "slo must set latency, timeToFirstToken or timePerOutputToken",
        field="spec.slo.latency",
    ),
    *(
        refused(
            f"objective {share}",
            "spec.slo.objective",
            share,
            "slo.objective must be a share from 0.5 to 0.9999, such as 0.99",
        )
        for share in (0, 0.499, 0.99999, 1, 99)
    ),
)
