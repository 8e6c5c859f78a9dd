"""Names of metrics: which server a page is of, and which names a custom profile needs. Pure."""

from __future__ import annotations

from pydantic import ValidationError

from headroom.api.service_spec.custom_metrics import (
    CustomMetrics,
    HistogramReference,
    MetricReference,
)

PREFIXES = {
    "headroom": "headroom_",
    "vllm": "vllm:",
    "sglang": "sglang:",
    "tgi": "tgi_",
    "tei": "te_",
    "triton": "nv_inference_",
    "ray": "ray_",
    "mlserver": "model_infer_",
    "torchserve": "ts_",
    "mosec": "mosec_",
    "trtllm": "trtllm_",
    "llamacpp": "llamacpp:",
}
"""Prefix of the metric names of each runtime profile, in every version."""


def required_names(metrics: object) -> frozenset[str]:
    """Return the names that the page of a custom profile must have; none for an invalid spec."""
    try:
        custom = CustomMetrics.model_validate(metrics)
    except ValidationError:
        return frozenset()
    names = set()
    for field in CustomMetrics.model_fields:
        one = getattr(custom, field)
        if isinstance(one, HistogramReference) and not one.absent_is_zero:
            names.add(f"{one.name}_bucket")
        elif isinstance(one, MetricReference) and not one.absent_is_zero:
            names.add(one.name)
    return frozenset(names)


def profile_of(names: frozenset[str]) -> str | None:
    """Return the runtime profile that has these metrics; None if no profile has."""
    counts = {
        profile: sum(name.startswith(prefix) for name in names)
        for profile, prefix in PREFIXES.items()
    }
    best = max(counts, key=lambda profile: counts[profile])
    return best if counts[best] else None
