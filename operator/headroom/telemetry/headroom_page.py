"""Reads one page of the Headroom model server into one sample."""

from __future__ import annotations

from headroom.profiles.headroom import HEADROOM
from headroom.scaling.values.observation import PodSample
from headroom.telemetry.samples.pod_samples import PodSamples

METRICS_PATH = HEADROOM.metrics_path


def read_sample(page: str, *, pod: str, model: str, time_s: float) -> PodSample:
    """Read the page of one pod (its UID) at `time_s` about the model.

    Raises MalformedExposition, MissingMetric or InvalidMetric.
    """
    sample = PodSamples(HEADROOM, model).take(page, pod=pod, time_s=time_s)
    assert sample is not None  # this server exposes every quantity
    return sample
