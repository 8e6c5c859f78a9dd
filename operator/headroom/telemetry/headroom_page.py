"""One page of the headroom model server → one sample."""

from __future__ import annotations

from headroom.profiles.headroom import HEADROOM
from headroom.scaling.values import PodSample
from headroom.telemetry.pod_samples import PodSamples

METRICS_PATH = HEADROOM.metrics_path


def read_sample(page: str, *, pod: str, model: str, time_s: float) -> PodSample:
    """Read what one pod (its UID) exposed at `time_s` about the model.

    Raises MalformedExposition, MissingMetric or InvalidMetric; there is never half a sample.
    """
    sample = PodSamples(HEADROOM, model).take(page, pod=pod, time_s=time_s)
    assert sample is not None  # the server says everything outright
    return sample
