"""`headroom plan generation --measure`: the cost is learned from a replica's metrics."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from cli.plan.measured_replicas import FIXED_S, PROMPT, PROMPT_S, SEQUENCE_S, Replica, VllmReplica
from headroom.adapters.pods.metrics_page import page_url
from headroom.cli.commands.plan.generation_options import ReplicaOptions
from headroom.cli.commands.plan.measured_engine import Clock, MeasuredEngine, measured_engine
from headroom.cli.commands.plan.replica_cost import ReplicaCost, replica_cost
from headroom.errors import Unmeasurable
from headroom.planner.errors import ImpossiblePlan
from headroom.scaling.values.tokens import EngineLimits


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
    assert any(one.startswith("cost at load: known within") for one in found.unknown)
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
    assert any("measured at 1/s" in one for one in unknown) == warns


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
