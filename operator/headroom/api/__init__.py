"""The InferenceService as frozen values: what is promised, and what the cluster shows of it."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from headroom.api.durations import Duration
    from headroom.api.inference_service import InferenceService
    from headroom.api.invalid_spec import InvalidSpec, Problem
    from headroom.api.spec import Spec

__all__ = ["Duration", "InferenceService", "InvalidSpec", "Problem", "Spec"]

_STANDS_IN = {
    "Duration": "durations",
    "InferenceService": "inference_service",
    "InvalidSpec": "invalid_spec",
    "Problem": "invalid_spec",
    "Spec": "spec",
}


def __getattr__(name: str) -> object:
    """Import a name when it is asked for: whoever reads conditions need not wait for the spec."""
    if name not in _STANDS_IN:
        raise AttributeError(f"module {__name__} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_STANDS_IN[name]}"), name)
