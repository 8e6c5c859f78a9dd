"""The InferenceService as frozen values, and their schema.

- one stored object: inference_service, invalid_spec, rule_words, kind
- its parts: the packages service_spec and service_status, with reasons and start_steps
- its schema: the package schema
- building blocks: values, durations, timestamps, text_forms
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from headroom.api.durations import Duration
    from headroom.api.inference_service import InferenceService
    from headroom.api.invalid_spec import InvalidSpec, Problem
    from headroom.api.service_spec.spec import Spec

__all__ = ["Duration", "InferenceService", "InvalidSpec", "Problem", "Spec"]

_MODULES = {
    "Duration": "durations",
    "InferenceService": "inference_service",
    "InvalidSpec": "invalid_spec",
    "Problem": "invalid_spec",
    "Spec": "service_spec.spec",
}


def __getattr__(name: str) -> object:
    """Import a name on first use, so that reading conditions does not load the spec (0.2 s)."""
    if name not in _MODULES:
        raise AttributeError(f"module {__name__} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_MODULES[name]}"), name)
