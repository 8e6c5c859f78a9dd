"""`spec.prefillRef`: the prefill pool whose prompts this service, a decode pool, answers.

It has no namespace: both pools are in the same one. The prefill pool states nothing, so that the
two cannot contradict each other.
"""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from headroom.api.text_forms import TextForm
from headroom.api.values import Rule, Value


class PrefillRef(Value):
    """InferenceService in the same namespace that computes the prompts."""

    name: Annotated[
        str,
        Field(max_length=52),
        TextForm(
            "^[a-z]([-a-z0-9]*[a-z0-9])?$",
            "must be the name of an InferenceService: lower-case letters, digits and -, starting "
            "with a letter",
        ),
    ]
    """Name of the InferenceService."""


SELF_RULE = "spec.prefillRef.name must be the name of another InferenceService"
SELF_CEL = "!has(self.spec.prefillRef) || self.spec.prefillRef.name != self.metadata.name"

PREFILL_RULES = (
    Rule(
        field="prefillRef",
        cel="!has(self.prefillRef) || has(self.slo.timePerOutputToken)",
        holds=lambda spec: spec.prefill_ref is None or spec.slo.time_per_output_token is not None,
        message="slo.timePerOutputToken must be set with prefillRef: it is what a decode pool "
        "promises",
        got=lambda spec: "none",
    ),
    Rule(
        field="prefillRef",
        cel="!has(self.prefillRef) || self.scaling.minReplicas > 0",
        holds=lambda spec: spec.prefill_ref is None or spec.scaling.min_replicas > 0,
        message="scaling.minReplicas must be at least 1 with prefillRef: a request that waits at "
        "the prefill pool starts no replica here",
        got=lambda spec: f"{spec.scaling.min_replicas}",
    ),
)
"""Rules of the spec, because they read slo and scaling too."""
