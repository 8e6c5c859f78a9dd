"""Warm-up requests are subtracted from a pod's counters, and nothing else is."""

from __future__ import annotations

import math
from pathlib import Path

import pytest

from headroom.profiles import PROFILES
from headroom.scaling.values.observation import PodSample
from headroom.telemetry.errors import TelemetryError
from headroom.telemetry.samples.accounts import Batch
from headroom.telemetry.samples.pod_samples import PodSamples

PAGES = Path(__file__).parent / "pages"
MODELS = {"triton": "model", "mlserver": None, "mosec": None, "vllm": None, "sglang": None}


def page(name: str) -> str:
    return (PAGES / f"{name}.prom").read_text()


def taken(samples: PodSamples, *pages: str) -> PodSample:
    """Return the sample of the last page, read as often as the profile needs."""
    sample = None
    for number, one in enumerate(pages):
        sample = samples.take(one, pod="p", time_s=10.0 + 2.0 * number)
    assert sample is not None
    return sample


def counters(sample: PodSample) -> tuple[float, ...]:
    return (
        *(sample.arrivals, sample.missed, sample.batches, sample.batch_items),
        *(sample.batch_seconds, *sample.latency.counts),
    )


@pytest.mark.parametrize("name", MODELS)
def test_sample_excludes_the_baseline(name: str) -> None:
    first, second = page(f"{name}_first"), page(f"{name}_second")
    whole = PodSamples(PROFILES[name], None, Batch(largest=8))
    later = PodSamples(PROFILES[name], None, Batch(largest=8))
    later.begin(first, pod="p", time_s=9.0)
    before = taken(whole, first, first)
    grown = [
        now - then
        for now, then in zip(
            counters(taken(whole, first, first, second)), counters(before), strict=True
        )
    ]
    sample = taken(later, first, first, second)
    assert [math.isclose(a, b, abs_tol=1e-6) for a, b in zip(counters(sample), grown, strict=True)]
    assert counters(sample)[0] == pytest.approx(grown[0])
    assert sample.arrivals > 0.0
    assert (sample.waiting, sample.running) == _gauges(name, first, second)


def test_restarted_process_has_no_baseline() -> None:
    samples = PodSamples(PROFILES["mosec"], None, Batch(largest=8))
    samples.begin(page("mosec_second"), pod="p", time_s=9.0)
    plain = PodSamples(PROFILES["mosec"], None, Batch(largest=8))
    for one in ("mosec_fresh", "mosec_first"):
        assert counters(taken(samples, page(one))) == counters(taken(plain, page(one)))


def test_baseline_is_kept_while_the_pod_exists() -> None:
    samples = PodSamples(PROFILES["mosec"], None, Batch(largest=8))
    samples.begin(page("mosec_first"), pod="p", time_s=9.0)
    samples.keep([])
    samples.exist(["p"])
    assert taken(samples, page("mosec_first")).arrivals == 0.0
    samples.keep([])
    samples.exist([])
    assert taken(samples, page("mosec_first")).arrivals > 0.0


@pytest.mark.parametrize("before", [(), ("mosec_first",)], ids=["first", "after another"])
def test_malformed_page_leaves_no_baseline(before: tuple[str, ...]) -> None:
    samples = PodSamples(PROFILES["mosec"], None, Batch(largest=8))
    for one in before:
        samples.begin(page(one), pod="p", time_s=8.0)
    with pytest.raises(TelemetryError):
        samples.begin("<html>", pod="p", time_s=9.0)
    assert taken(samples, page("mosec_first")).arrivals > 0.0


def _gauges(name: str, first: str, second: str) -> tuple[int, int]:
    """Gauges are not affected by the baseline."""
    sample = taken(PodSamples(PROFILES[name], None, Batch(largest=8)), first, first, second)
    return sample.waiting, sample.running
