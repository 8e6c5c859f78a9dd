"""`headroom plan generation --measure`: the cost is learned from a replica's metrics."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import replace

import pytest

from headroom.adapters.metrics_page import page_url
from headroom.cli.commands.plan.generation_options import ReplicaOptions
from headroom.cli.commands.plan.measured_engine import Clock, MeasuredEngine, measured_engine
from headroom.cli.commands.plan.replica_cost import ReplicaCost, replica_cost
from headroom.errors import Unmeasurable
from headroom.planner.errors import ImpossiblePlan
from headroom.scaling.values.tokens import EngineLimits

FIXED_S, PROMPT_S, SEQUENCE_S = 0.03, 0.00002, 0.003
PROMPT, ANSWER = 800, 100


class Replica:
    """Pages of a server whose batches grow and shrink, at a clock of its own."""

    def __init__(self, *, silent: bool = False, quiet: bool = False, slowdown: float = 1.0) -> None:
        self.slowdown = slowdown
        self.now_s, self.silent, self.quiet = 0.0, silent, quiet
        self.sequence_s = 0.0
        self.iterations = self.busy_s = self.prompts = self.generated = 0.0
        self.xx = [[0.0] * 5 for _ in range(5)]
        self.xy = [0.0] * 5
        self.ended = 0
        self._batches = self._wave()

    def _wave(self) -> Iterator[int]:
        step = 0
        while True:
            step += 1
            yield 1 if self.quiet else 8 + round(6 * math.sin(step / 40))

    def sleep(self, seconds: float) -> None:
        over_s = self.now_s + seconds
        while self.now_s < over_s:
            batch = next(self._batches)
            prompt = PROMPT if int(self.iterations) % (ANSWER if self.quiet else 12) == 0 else 0
            row = (1.0, float(prompt), float(batch), 900.0 * batch, prompt * prompt / 2)
            took_s = self.slowdown * (FIXED_S + PROMPT_S * prompt + SEQUENCE_S * batch)
            for left in range(5):
                self.xy[left] += row[left] * took_s
                for right in range(left, 5):
                    self.xx[left][right] += row[left] * row[right]
            self.iterations += 1
            self.busy_s += took_s
            self.sequence_s += took_s * batch
            self.prompts += prompt
            self.generated += batch
            self.ended += prompt > 0
            self.now_s += took_s

    def page(self, _: str) -> str:
        return "\n".join(self._lines()) + "\n"

    def _lines(self) -> Iterator[str]:
        label = 'model="m"'
        for outcome in ("ok", "refused", "expired", "cancelled", "failed"):
            answered = self.ended if outcome == "ok" else 0
            yield f'headroom_requests_total{{{label},outcome="{outcome}"}} {answered}'
        yield f"headroom_requests_received_total{{{label}}} {self.ended}"
        for gauge in ("waiting", "running"):
            yield f"headroom_requests_{gauge}{{{label}}} 0"
        ended, batches = float(self.ended), float(self.iterations)
        for name, total, count in (
            ("headroom_request_duration_seconds", 9.0 * ended, ended),
            ("headroom_time_to_first_token_seconds", 0.2 * ended, ended),
            ("headroom_time_per_output_token_seconds", 0.06 * ended, ended),
            ("headroom_prompt_tokens", PROMPT * ended, ended),
            ("headroom_answer_tokens", ANSWER * ended, ended),
            ("headroom_execution_duration_seconds", self.busy_s, batches),
            ("headroom_batch_size", self.generated, batches),
        ):
            for bound in ("1000", "+Inf"):
                yield f'{name}_bucket{{{label},le="{bound}"}} {count}'
            yield f"{name}_sum{{{label}}} {total}"
            yield f"{name}_count{{{label}}} {count}"
        yield f"headroom_max_batch_size{{{label}}} 64"
        yield f"headroom_max_iteration_tokens{{{label}}} 1024"
        if self.silent:
            return
        yield f"headroom_iterations_total{{{label}}} {self.iterations}"
        yield f"headroom_device_busy_seconds_total{{{label}}} {self.busy_s}"
        for kind, value in (("computed", self.prompts), ("generated", self.generated)):
            yield f'headroom_tokens_total{{{label},kind="{kind}"}} {value}'
        names = ("1", "P", "D", "KV", "X")
        for left, row in enumerate(names):
            yield f'headroom_iteration_cost_xy_total{{{label},row="{row}"}} {self.xy[left]}'
            for right in range(left, 5):
                labels = f'{label},row="{row}",column="{names[right]}"'
                yield f"headroom_iteration_cost_xx_total{{{labels}}} {self.xx[left][right]}"


class VllmReplica(Replica):
    """Pages of vLLM, which state no limit of sequences."""

    def _lines(self) -> Iterator[str]:
        label = 'engine="0",model_name="m"'
        ended, iterations = float(self.ended), float(self.iterations)
        for name, value in (
            ("num_requests_waiting", 0.0),
            ("num_requests_running", 0.0),
            ("num_preemptions_total", 0.0),
            ("kv_cache_usage_perc", 0.1),
            ("prompt_tokens_cached_total", 0.0),
            ("generation_tokens_total", self.generated),
            ("iteration_tokens_total_count", iterations),
        ):
            yield f"vllm:{name}{{{label}}} {value}"
        yield f'vllm:prompt_tokens_by_source_total{{{label},source="local_compute"}} {self.prompts}'
        yield f'vllm:request_success_total{{{label},finished_reason="length"}} {ended}'
        yield f"vllm:request_inference_time_seconds_sum{{{label}}} {9.0 * ended}"
        for name, total, count in (
            ("e2e_request_latency_seconds", 9.0 * ended, ended),
            ("time_to_first_token_seconds", 0.2 * ended, ended),
            ("request_time_per_output_token_seconds", 0.06 * ended, ended),
            ("request_prompt_tokens", PROMPT * ended, ended),
            ("request_generation_tokens", ANSWER * ended, ended),
            ("inter_token_latency_seconds", self.sequence_s, self.generated),
        ):
            for bound in ("1000.0", "+Inf"):
                yield f'vllm:{name}_bucket{{{label},le="{bound}"}} {count}'
            yield f"vllm:{name}_sum{{{label}}} {total}"
            yield f"vllm:{name}_count{{{label}}} {count}"


def watched(replica: Replica, seconds: float = 60.0, profile: str = "headroom") -> object:
    return measured_engine(
        "http://replica:8000",
        profile=profile,
        model=None,
        seconds=seconds,
        sequences=256,
        read=replica.page,
        clock=Clock(now_s=lambda: replica.now_s, sleep=replica.sleep),
    )


def test_the_cost_is_that_of_the_replica() -> None:
    found = watched(Replica())
    assert isinstance(found, MeasuredEngine)
    # after a minute the usual proportions of its parts still weigh
    at_work_s = found.cost.iteration_s(0, 10, 9000)
    assert at_work_s == pytest.approx(FIXED_S + 10 * SEQUENCE_S, rel=0.2)
    with_prompt_s = found.cost.iteration_s(PROMPT, 10, 9000, PROMPT * PROMPT / 2)
    assert with_prompt_s - at_work_s == pytest.approx(PROMPT_S * PROMPT, rel=0.2)
    assert (found.limits.sequences, found.limits.iteration_tokens) == (64, 1024)
    assert found.source == "sums over iterations"


def test_an_engine_that_is_always_busy_is_not_at_its_load() -> None:
    """One sequence keeps an engine busy: what counts is arrivals over what it takes at most."""
    found = watched(Replica(quiet=True))
    assert isinstance(found, MeasuredEngine)
    assert any(one.startswith("cost at load: at most") for one in found.unknown)
    assert not any(one.startswith("cost at load") for one in watched_busy().unknown)


def watched_busy() -> MeasuredEngine:
    found = watched(Replica())
    assert isinstance(found, MeasuredEngine)
    return found


@pytest.mark.parametrize(("given", "expected"), [(None, 256), (16, 16)])
def test_a_server_that_states_no_limit_of_sequences_has_the_given_or_the_usual_one(
    given: int | None, expected: int
) -> None:
    engine = watched(VllmReplica(), profile="vllm")
    assert isinstance(engine, MeasuredEngine)
    found = replica_cost(replace(MEASURED, max_sequences=given), engine)
    assert found.limits.sequences == expected
    assert any("Give --max-sequences" in one for one in found.unknown) == (given is None)
    assert not any(one.startswith("cost at load") for one in found.unknown)


MEASURED = ReplicaOptions(measure="http://replica:8000", max_sequences=32)


@pytest.mark.parametrize(("planned_rps", "warns"), [(1.0, False), (2.0, True)])
def test_a_plan_beyond_the_rate_that_was_seen_says_so(planned_rps: float, warns: bool) -> None:
    engine = replace(watched_busy(), seen_rps=1.0)
    found = replica_cost(MEASURED, engine)
    assert (found.limits.sequences, found.limits.iteration_tokens) == (32, 1024)
    unknown = found.planned(planned_rps).unknown
    assert any("1/s was seen" in one for one in unknown) == warns


def test_experts_of_a_measured_mixture_are_shown() -> None:
    cost = replace(watched_busy().cost, experts_s=0.044, expert_share=0.25)
    shown = ReplicaCost(cost=cost, limits=EngineLimits(), gpus=1, source="as given")
    assert "44 ms for the experts of a mixture, of which a token uses 25 %" in shown.lines()[0]
    assert (shown.report()["expertsSeconds"], shown.report()["expertShare"]) == (0.044, 0.25)


def test_a_server_that_does_not_show_its_cost_says_what_is_missing() -> None:
    with pytest.raises(
        Unmeasurable, match=r"does not show what an iteration costs: .*time per iter"
    ):
        watched(Replica(silent=True))


def test_a_slow_replica_says_how_many_iterations_are_needed() -> None:
    with pytest.raises(Unmeasurable, match=r"fewer than 200 iterations .*--watch"):
        watched(VllmReplica(slowdown=8.0), 60.0, profile="vllm")


@pytest.mark.parametrize(
    ("act", "kind", "words"),
    [
        (lambda: watched(Replica(), 5.0), ImpossiblePlan, "--watch must be between 20s and 1h"),
        (lambda: watched(Replica(), profile="triton"), ImpossiblePlan, "--profile must be one of"),
        (lambda: watched(Replica(), profile="llamacpp"), ImpossiblePlan, "headroom, sglang, vllm"),
        (lambda: watched(Replica(), profile="vllm"), Unmeasurable, "Set --profile to the server"),
        (lambda: page_url("replica:8000", "/metrics"), Unmeasurable, "the URL must be"),
    ],
)
def test_what_cannot_be_measured_is_refused_with_the_next_step(
    act: Callable[[], object], kind: type[Exception], words: str
) -> None:
    with pytest.raises(kind, match=words):
        act()


def test_a_url_without_a_path_gets_the_page_of_the_profile() -> None:
    assert page_url("http://a:1/", "/metrics") == "http://a:1/metrics"
    assert page_url("http://a:1/own", "/metrics") == "http://a:1/own"
