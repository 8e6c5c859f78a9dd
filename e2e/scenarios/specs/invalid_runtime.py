"""Invalid specs of replicas: runtime, model, accelerator, warm-up and drain."""

from __future__ import annotations

from scenarios.specs.spec_cases import (
    ABSENT,
    InvalidSpec,
    bounds,
    duration_bounds,
    missing,
    refused,
    too_many,
)

_ENV = [{"name": f"V{i}", "value": "1"} for i in range(65)]

INVALID_RUNTIME: tuple[InvalidSpec, ...] = (
    refused(
        "no runtime",
        "spec.runtime",
        ABSENT,
        "spec must set exactly one of runtime.image",
        field="spec.targetRef",
    ),
    refused(
        "empty image",
        "spec.runtime.image",
        "",
        "should be at least 1 chars long",
        "must have at least 1 character",
    ),
    refused(
        "image with a space",
        "spec.runtime.image",
        "server: 1",
        "must be the name of an image without spaces",
    ),
    refused(
        "endless image",
        "spec.runtime.image",
        "x" * 513,
        "may not be more than 512 bytes",
        "must have at most 512 characters",
    ),
    *bounds("spec.runtime.port", 0, "or equal to 1", 70000, "or equal to 65535"),
    *bounds("spec.warmup.requests", 0, "or equal to 1", 10**9, "or equal to 1000"),
    refused(
        "endless duration",
        "spec.drain.gracePeriod",
        "1s" * 11,
        "may not be more than 20 bytes",
        "must be a duration from 1s to 1h",
    ),
    *duration_bounds("spec.warmup.timeout", "1s", "24h", "0s", "999ms", "24h0.001ms", "999999h"),
    *duration_bounds("spec.warmup.maxLatency", "1ms", "10m", "0ms", "11m"),
    *duration_bounds("spec.drain.gracePeriod", "1s", "1h", "0s", "2h"),
    too_many("spec.runtime.args", 128, ["x"] * 10**5),
    too_many("spec.runtime.env", 64, _ENV),
    too_many("spec.runtime.resources.limits", 32, {f"example.com/r{i}": 1 for i in range(33)}),
    missing(
        "env without a name", "spec.runtime.env", [{"value": "1"}], field="spec.runtime.env[0].name"
    ),
    refused(
        "the same env twice",
        "spec.runtime.env",
        [{"name": "A", "value": "1"}, {"name": "A", "value": "2"}],
        "Duplicate value",
        "entries must differ in name; A occurs more than once",
    ),
    refused(
        "env that the operator derives",
        "spec.runtime.env",
        [{"name": "HEADROOM_PORT", "value": "1"}],
        "env must not set variables that the operator derives from other fields",
    ),
    refused(
        "env with two values",
        "spec.runtime.env",
        [{"name": "A", "value": "1", "valueFrom": {"fieldRef": {"fieldPath": "x"}}}],
        "an env entry must not set both value and valueFrom",
        field="spec.runtime.env[0]",
    ),
    refused(
        "env with two sources",
        "spec.runtime.env",
        [
            {
                "name": "A",
                "valueFrom": {
                    "fieldRef": {"fieldPath": "x"},
                    "secretKeyRef": {"name": "a", "key": "b"},
                },
            }
        ],
        "valueFrom must set exactly one of",
        field="spec.runtime.env[0].valueFrom",
    ),
    refused(
        "negative memory",
        "spec.runtime.resources",
        {"limits": {"memory": "-1Gi"}},
        "must be a quantity of at least 0",
        field="spec.runtime.resources.limits.memory",
    ),
    *(
        refused(
            f"{name} of {amount!r}",
            "spec.runtime.resources",
            {which: {name: amount}},
            f"{name} must be 0 or at least 1Mi: a number without a unit means bytes",
            field=f"spec.runtime.resources.{which}",
        )
        for which, name, amount in (
            ("limits", "memory", "16"),
            ("limits", "memory", 16),
            ("requests", "memory", "400m"),
            ("requests", "memory", "16k"),
            ("limits", "ephemeral-storage", "1048575"),
        )
    ),
    refused(
        "a download of 100 bytes",
        "spec.model.sizeLimit",
        "100",
        "must be 0 or at least 1Mi: a number without a unit means bytes",
    ),
    refused(
        "accelerator as a resource",
        "spec.runtime.resources",
        {"limits": {"nvidia.com/gpu": 1}},
        "runtime.resources must not contain accelerator.resource",
    ),
    refused(
        "accelerator without a domain",
        "spec.accelerator.resource",
        "gpu",
        "must be the name of an extended resource, such as nvidia.com/gpu",
    ),
    *(
        refused(
            f"model at {uri}",
            "spec.model.uri",
            uri,
            "model.uri must be empty, file:///path, pvc://claim/path",
        )
        for uri in (
            *("/models/x", "file://host/x", "pvc://", "pvc://Claim/x", " "),
            *("https://host/x", "s3://", "s3://Bucket/x", "hf://", "hf://a/b/c", "hf://a/b@-x"),
            *("oci://", "oci://-x", "oci://registry/x y"),
        )
    ),
    *(
        refused(
            f"what only a download has, with {uri or 'a model in the image'}",
            "spec.model",
            {"uri": uri, **beside},
            "model.digest and model.secretName must not be set unless",
            field="spec.model.uri",
        )
        for uri, beside in (
            ("", {"secretName": "hub"}),
            ("oci://registry.example/m:1", {"digest": f"sha256:{'0' * 64}"}),
        )
    ),
    refused(
        "model with another digest",
        "spec.model.digest",
        "md5:00",
        "must be sha256: and 64 digits",
    ),
    refused(
        "model above its claim",
        "spec.model.uri",
        "pvc://claim/../../etc",
        "model.uri must not contain a .. segment",
    ),
    refused(
        "model name with a slash",
        "spec.model.name",
        "a/b",
        "must be a name of letters, digits, -, . and _",
    ),
    missing(
        "container without a name",
        "spec.runtime.podTemplate",
        {"spec": {"containers": [{"image": "x"}]}},
        field="spec.runtime.podTemplate.spec.containers[0].name",
    ),
    refused(
        "containers that are no list",
        "spec.runtime.podTemplate",
        {"spec": {"containers": "server"}},
        "must be of type array",
        "must be a list",
        field="spec.runtime.podTemplate.spec.containers",
    ),
)
