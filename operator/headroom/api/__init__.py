"""The InferenceService as frozen values: what is promised, and what the cluster shows of it."""

from headroom.api.durations import Duration
from headroom.api.inference_service import InferenceService
from headroom.api.invalid_spec import InvalidSpec, Problem
from headroom.api.spec import Spec

__all__ = ["Duration", "InferenceService", "InvalidSpec", "Problem", "Spec"]
