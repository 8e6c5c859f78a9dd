"""Specs that must not be stored: each breaks one rule, and the error names field and rule.

The API server and the operator's own parser are held to the same table.
"""

from __future__ import annotations

from scenarios.invalid_routing import INVALID_ROUTING
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

_ENV = [{"name": f"V{i}", "value": "1"} for i in range(65)]

INVALID_SPECS: tuple[InvalidSpec, ...] = (
    *INVALID_SCALING,
    *INVALID_ROUTING,
    *INVALID_SERVERS,
    InvalidSpec(
        why="no spec", path="spec", value=ABSENT, says="Required value", parser_says="must be"
    ),
    InvalidSpec(
        why="no runtime",
        path="spec.runtime",
        value=ABSENT,
        field="spec.targetRef",
        says="spec must set exactly one of runtime.image",
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
    InvalidSpec(
        why="empty image",
        path="spec.runtime.image",
        value="",
        says="should be at least 1 chars long",
        parser_says="should have at least 1 character",
    ),
    InvalidSpec(
        why="image with a space",
        path="spec.runtime.image",
        value="server: 1",
        says=r"should match '^[!-~]+$'",
        parser_says=MATCH,
    ),
    InvalidSpec(
        why="endless image",
        path="spec.runtime.image",
        value="x" * 513,
        says="may not be more than 512 bytes",
        parser_says="should have at most 512 characters",
    ),
    wrong_enum(
        "spec.scaling.mode",
        "Manual",
        '"Auto", "Recommend", "External"',
        "'Auto', 'Recommend' or 'External'",
    ),
    wrong_enum("spec.slo.latency.percentile", 50, '"90", "95", "99"', "90, 95 or 99"),
    wrong_enum("spec.slo.latency.percentile", 0, '"90", "95", "99"', "90, 95 or 99"),
    *bounds("spec.runtime.port", 0, "or equal to 1", 70000, "or equal to 65535"),
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
    *bounds("spec.warmup.requests", 0, "or equal to 1", 10**9, "or equal to 1000"),
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
    InvalidSpec(
        why="endless duration",
        path="spec.drain.gracePeriod",
        value="1s" * 11,
        says="may not be more than 20 bytes",
        parser_says="numbers with units ms, s, m or h",
    ),
    *duration_bounds("spec.slo.latency.target", "1ms", "10m", "0s", "0.999ms", "10m0.001ms", "1h"),
    *duration_bounds("spec.warmup.timeout", "1s", "24h", "0s", "999ms", "24h0.001ms", "999999h"),
    *duration_bounds("spec.warmup.maxLatency", "1ms", "10m", "0ms", "11m"),
    *duration_bounds("spec.drain.gracePeriod", "1s", "1h", "0s", "2h"),
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
    too_many("spec.runtime.args", 128, ["x"] * 10**5),
    too_many("spec.runtime.env", 64, _ENV),
    too_many("spec.runtime.resources.limits", 32, {f"example.com/r{i}": 1 for i in range(33)}),
    InvalidSpec(
        why="env without a name",
        path="spec.runtime.env",
        value=[{"value": "1"}],
        field="spec.runtime.env[0].name",
        says="Required value",
        parser_says="is required",
    ),
    InvalidSpec(
        why="the same env twice",
        path="spec.runtime.env",
        value=[{"name": "A", "value": "1"}, {"name": "A", "value": "2"}],
        says="Duplicate value",
        parser_says="entries must differ in name; A occurs more than once",
    ),
    InvalidSpec(
        why="env that the operator derives",
        path="spec.runtime.env",
        value=[{"name": "HEADROOM_PORT", "value": "1"}],
        says="env must not set variables that the operator derives from other fields",
    ),
    InvalidSpec(
        why="env with two values",
        path="spec.runtime.env",
        value=[{"name": "A", "value": "1", "valueFrom": {"fieldRef": {"fieldPath": "x"}}}],
        field="spec.runtime.env[0]",
        says="an env entry must not set both value and valueFrom",
    ),
    InvalidSpec(
        why="env with two sources",
        path="spec.runtime.env",
        value=[
            {
                "name": "A",
                "valueFrom": {
                    "fieldRef": {"fieldPath": "x"},
                    "secretKeyRef": {"name": "a", "key": "b"},
                },
            }
        ],
        field="spec.runtime.env[0].valueFrom",
        says="valueFrom must set exactly one of",
    ),
    InvalidSpec(
        why="negative memory",
        path="spec.runtime.resources",
        value={"limits": {"memory": "-1Gi"}},
        field="spec.runtime.resources.limits.memory",
        says="should match '^[0-9]",
        parser_says="must be a quantity of at least 0",
    ),
    InvalidSpec(
        why="accelerator as a resource",
        path="spec.runtime.resources",
        value={"limits": {"nvidia.com/gpu": 1}},
        says="runtime.resources must not contain accelerator.resource",
    ),
    InvalidSpec(
        why="accelerator without a domain",
        path="spec.accelerator.resource",
        value="gpu",
        says="should match '^[a-z0-9]",
        parser_says=MATCH,
    ),
    *(
        InvalidSpec(
            why=f"model at {uri}",
            path="spec.model.uri",
            value=uri,
            says="model.uri must be empty, file:///path, pvc://claim/path",
        )
        for uri in (
            *("/models/x", "file://host/x", "pvc://", "pvc://Claim/x", " "),
            *("https://host/x", "s3://", "s3://Bucket/x", "hf://", "hf://a/b/c", "hf://a/b@-x"),
            *("oci://", "oci://-x", "oci://registry/x y"),
        )
    ),
    *(
        InvalidSpec(
            why=f"what only a download has, with {uri or 'a model in the image'}",
            path="spec.model",
            value={"uri": uri, **beside},
            field="spec.model.uri",
            says="model.digest and model.secretName must not be set unless",
        )
        for uri, beside in (
            ("", {"secretName": "hub"}),
            ("oci://registry.example/m:1", {"digest": f"sha256:{'0' * 64}"}),
        )
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
    InvalidSpec(
        why="model with another digest",
        path="spec.model.digest",
        value="md5:00",
        says="should match '^sha256:",
        parser_says="should match pattern '^sha256:",
    ),
    InvalidSpec(
        why="model above its claim",
        path="spec.model.uri",
        value="pvc://claim/../../etc",
        says="model.uri must not contain a .. segment",
    ),
    InvalidSpec(
        why="model name with a slash",
        path="spec.model.name",
        value="a/b",
        says="should match '^[A-Za-z0-9]",
        parser_says=MATCH,
    ),
    InvalidSpec(
        why="container without a name",
        path="spec.runtime.podTemplate",
        value={"spec": {"containers": [{"image": "x"}]}},
        field="spec.runtime.podTemplate.spec.containers[0].name",
        says="Required value",
        parser_says="is required",
    ),
    InvalidSpec(
        why="containers that are no list",
        path="spec.runtime.podTemplate",
        value={"spec": {"containers": "server"}},
        field="spec.runtime.podTemplate.spec.containers",
        says="must be of type array",
        parser_says="should be a valid tuple",
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
