"""Specs of decode pools with an invalid reference to their prefill pool; none may be stored."""

from __future__ import annotations

from typing import Any

from scenarios.specs.spec_cases import InvalidSpec, missing, refused

DECODE: dict[str, Any] = {
    "runtime": {"image": "registry.example/server:1", "profile": "vllm", "maxBatchSize": 8},
    "slo": {"timePerOutputToken": {"target": "50ms"}},
    "prefillRef": {"name": "chat-prefill"},
}
FIRST = {"timeToFirstToken": {"target": "2s"}}

INVALID_POOLS: tuple[InvalidSpec, ...] = (
    refused(
        "decode pool that promises nothing per output token",
        "spec",
        DECODE | {"slo": FIRST},
        "slo.timePerOutputToken must be set with prefillRef",
        field="spec.prefillRef",
    ),
    refused(
        "decode pool that scales to zero",
        "spec",
        DECODE | {"scaling": {"minReplicas": 0}, "routing": {"mode": "Gateway"}},
        "scaling.minReplicas must be at least 1 with prefillRef",
        field="spec.prefillRef",
    ),
    refused(
        "decode pool that is its own prefill pool",
        "spec",
        DECODE | {"prefillRef": {"name": "minimal"}},
        "spec.prefillRef.name must be the name of another InferenceService",
        field="spec.prefillRef.name",
    ),
    missing("prefill pool without a name", "spec.prefillRef", {}, field="spec.prefillRef.name"),
    refused(
        "prefill pool of another namespace",
        "spec.prefillRef.name",
        "other/chat-prefill",
        "must be the name of an InferenceService",
        field="spec.prefillRef.name",
    ),
)
