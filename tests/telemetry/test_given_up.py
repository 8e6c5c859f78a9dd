"""Answers that clients give up, on pages of servers that count them, and of others."""

from __future__ import annotations

import pytest

from headroom.profiles import PROFILES
from headroom.scaling.values.observation import PodSample
from headroom.telemetry.samples.accounts import Batch
from headroom.telemetry.samples.pod_samples import PodSamples


def page(
    *, answered: int, aborted: int = 0, first_tokens: int = 0, running: int = 0, waiting: int = 0
) -> str:
    """Return a page of vLLM."""
    label = 'model_name="m"'
    lines = [
        f"vllm:num_requests_waiting{{{label}}} {waiting}",
        f"vllm:num_requests_running{{{label}}} {running}",
        f'vllm:request_success_total{{{label},finished_reason="stop"}} {answered}',
        f'vllm:request_success_total{{{label},finished_reason="abort"}} {aborted}',
        f"vllm:request_inference_time_seconds_sum{{{label}}} {answered}",
        f"vllm:iteration_tokens_total_count{{{label}}} {10 * first_tokens}",
        f"vllm:generation_tokens_total{{{label}}} {100 * first_tokens}",
        f'vllm:e2e_request_latency_seconds_bucket{{{label},le="+Inf"}} {answered}',
        f'vllm:time_to_first_token_seconds_bucket{{{label},le="0.5"}} {first_tokens}',
        f'vllm:time_to_first_token_seconds_bucket{{{label},le="+Inf"}} {first_tokens}',
    ]
    return "\n".join(lines) + "\n"


def read(*pages: str) -> list[PodSample]:
    samples = PodSamples(PROFILES["vllm"], None, Batch(largest=256))
    found = []
    for number, text in enumerate(pages):
        sample = samples.take(text, pod="a", time_s=2.0 * (number + 1))
        assert sample is not None
        found.append(sample)
    return found


def given_up(sample: PodSample) -> float:
    assert sample.generation is not None
    return sample.generation.given_up


def test_answers_given_up_that_no_counter_shows_have_arrived() -> None:
    """VLLM drops an aborted request from all counts, but for its first token."""
    first, *_, last = read(
        page(answered=100, first_tokens=110, running=10),
        page(answered=180, first_tokens=208, running=8),
        page(answered=260, first_tokens=310, running=10),
        page(answered=340, first_tokens=410, running=10),
    )
    # 60 given up of 410: 340 answered, 10 in flight; the last page's 20 show with the next one
    assert (first.arrivals, last.arrivals) == (110, 390)
    assert given_up(last) == 0.0, "they are not among the missed ones"


def test_answers_given_up_that_count_as_aborted_are_no_misses() -> None:
    *_, last = read(
        page(answered=100, aborted=0, first_tokens=110, running=10),
        page(answered=180, aborted=20, first_tokens=210, running=10),
        page(answered=260, aborted=40, first_tokens=310, running=10),
        page(answered=260, aborted=40, first_tokens=310, running=10),
    )
    assert (last.arrivals, last.missed, given_up(last)) == (310, 40, 20)


@pytest.mark.parametrize(
    "second",
    [
        page(answered=180, aborted=20, first_tokens=190, running=10, waiting=30),
        page(answered=180, aborted=20, first_tokens=200, running=10, waiting=30),
    ],
    ids=["clients left the queue", "a preempted sequence waits"],
)
def test_requests_that_wait_are_not_given_up_answers(second: str) -> None:
    *_, last = read(page(answered=100, first_tokens=110, running=10), second, second)
    assert (last.arrivals, given_up(last)) == (240, 0)


def test_gauge_that_lags_behind_by_a_page_makes_no_arrivals() -> None:
    first, lagging, last = read(
        page(answered=100, first_tokens=110, running=10),
        page(answered=100, first_tokens=140, running=10),
        page(answered=100, first_tokens=140, running=40),
    )
    assert (first.arrivals, lagging.arrivals, last.arrivals) == (110, 110, 140)
