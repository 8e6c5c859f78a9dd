"""The InferenceService as frozen values: spec, status, conditions, and their schema.

- spec: spec, service_level, objectives, token_objectives, scaling, schedules, target_ref, warmup,
  telemetry_source
- server: runtime, pod_template, common_metadata, rollout, model, custom_metrics
- routes: routing, routing_rules, traffic, client_tokens, class_promises
- status: status, status_types, status_durations, status_rendering, status_reading,
  decision_status, signals_status, cost_status, slo_status, class_status, demand_status,
  generation_status, conditions, reasons, start_steps
- schema: inference_service, kind, crd, structural_schema, served_schema, unknown_fields,
  invalid_spec
- values: values, durations, timestamps, cron_times
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from headroom.api.durations import Duration
    from headroom.api.inference_service import InferenceService
    from headroom.api.invalid_spec import InvalidSpec, Problem
    from headroom.api.spec import Spec

__all__ = ["Duration", "InferenceService", "InvalidSpec", "Problem", "Spec"]

_MODULES = {
    "Duration": "durations",
    "InferenceService": "inference_service",
    "InvalidSpec": "invalid_spec",
    "Problem": "invalid_spec",
    "Spec": "spec",
}


def __getattr__(name: str) -> object:
    """Import a name on first use, so that reading conditions does not load the spec (0.2 s)."""
    if name not in _MODULES:
        raise AttributeError(f"module {__name__} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_MODULES[name]}"), name)
