"""Invalid specs: what a replica is made of - runtime, model, accelerator, warm-up and drain."""

from __future__ import annotations

from scenarios.spec_cases import (
    ABSENT,
    MATCH,
    InvalidSpec,
    bounds,
    duration_bounds,
    too_many,
)

_ENV = [{"name": f"V{i}", "value": "1"} for i in range(65)]

INVALID_RUNTIME: tuple[InvalidSpec, ...] = (
    InvalidSpec(
        why="no runtime",
        path="spec.runtime",
        value=ABSENT,
        field="spec.targetRef",
        says="spec must set exactly one of runtime.image",
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
    *bounds("spec.runtime.port", 0, "or equal to 1", 70000, "or equal to 65535"),
    *bounds("spec.warmup.requests", 0, "or equal to 1", 10**9, "or equal to 1000"),
    InvalidSpec(
        why="endless duration",
        path="spec.drain.gracePeriod",
        value="1s" * 11,
        says="may not be more than 20 bytes",
        parser_says="numbers with units ms, s, m or h",
    ),
    *duration_bounds("spec.warmup.timeout", "1s", "24h", "0s", "999ms", "24h0.001ms", "999999h"),
    *duration_bounds("spec.warmup.maxLatency", "1ms", "10m", "0ms", "11m"),
    *duration_bounds("spec.drain.gracePeriod", "1s", "1h", "0s", "2h"),
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
)
