"""Promises on tokens: measured over the last minute, kept by room that is learned slowly."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import pytest

from headroom.api.service_spec.service_level import ServiceLevel
from headroom.controller.decide.measured_promise import completed
from headroom.controller.decide.token_slo import NO_TOKEN_SLO, TokenSLOController
from headroom.controller.decide.token_window import WINDOW_S, TokenWindow
from headroom.scaling import (
    Decision,
    Direction,
    Freshness,
    LimitApplied,
    Policy,
    Reason,
    ReplicaCounts,
    Signal,
    Signals,
    State,
)
from headroom.scaling.post_rules import PostRuleInputs, apply_post_rules
from headroom.scaling.values.latency_counts import LatencyCounts
from headroom.scaling.values.token_decision import (
    GenerationDecision,
    Identification,
    TokenMeasurement,
)
from headroom.scaling.values.tokens import Target
from support.cluster_world import Manifest
from support.controller_world import World, play
from support.pods_world import Pods

BOUNDS_S = (0.1, 0.2, 0.4, 0.8, math.inf)
POLICY = Policy(latency_target_s=5.0, max_replicas=8)
SLO = ServiceLevel.model_validate(
    {"latency": {"target": "5s"}, "timeToFirstToken": {"percentile": 90, "target": "200ms"}}
)
Pages = dict[str, dict[str, LatencyCounts | None]]


def counts(*cumulative: float) -> LatencyCounts:
    return LatencyCounts(bounds_s=BOUNDS_S, counts=cumulative)


def pages(page: LatencyCounts | None) -> Pages:
    return {"timeToFirstToken": {"a": page}, "timePerOutputToken": {"a": None}}


def test_token_window_sums_pods_of_the_last_minute() -> None:
    window = TokenWindow().observe({"a": counts(50, 50, 50, 50, 50)}, 0.0)
    assert window.percentile_s(0.9) is None, "a first page is a baseline"
    both = {"a": counts(60, 60, 60, 60, 60), "b": counts(7, 7, 7, 7, 7)}
    window = window.observe(both, 2.0)
    assert window.requests == 10.0
    assert window.percentile_s(0.9) == pytest.approx(0.09)
    window = window.observe({"b": counts(7, 7, 17, 17, 17)}, 4.0)
    # 20 requests, 10 within 100 ms, 10 from 200 to 400 ms: the 18th lies at 0.2 + 0.8 x 0.2
    assert window.requests == 20.0
    assert window.percentile_s(0.9) == pytest.approx(0.36)
    window = window.observe({"b": counts(7, 7, 17, 17, 17)}, 2.0 + WINDOW_S)
    assert window.requests == 10.0


def test_token_window_counts_late_and_restarted_histograms_from_zero() -> None:
    window = TokenWindow().observe({"a": None}, 0.0).observe({"a": counts(0, 3, 3, 3, 3)}, 2.0)
    assert window.requests == 3.0
    assert window.observe({"a": counts(0, 1, 1, 1, 1)}, 4.0).requests == 4.0
    other = LatencyCounts(bounds_s=(1.0, math.inf), counts=(9, 9))
    assert window.observe({"a": other}, 6.0).requests == 0.0, "other bounds cannot be subtracted"


def test_token_window_drops_what_is_of_a_clock_that_was_ahead() -> None:
    window = TokenWindow().observe({"a": counts(0, 0, 0, 0, 0)}, 600.0)
    window = window.observe({"a": counts(0, 0, 0, 9, 9)}, 602.0)
    window = window.observe({"a": counts(3, 3, 3, 12, 12)}, 4.0)
    assert window.requests == 3.0
    assert window.percentile_s(1.0) == pytest.approx(0.1)


def measured(ttft_s: float | None, now_s: float = 2.0) -> TokenSLOController:
    """After two pages between which 200 requests took so long to their first token."""
    promises = NO_TOKEN_SLO.observe(SLO, pages(counts(0, 0, 0, 0, 0)), now_s - 2.0)
    if ttft_s is None:
        return promises.observe(SLO, pages(counts(0, 0, 0, 0, 0)), now_s)
    grown = [200.0 * (ttft_s <= bound) for bound in BOUNDS_S]
    return promises.observe(SLO, pages(counts(*grown)), now_s)


def decision(
    now_s: float, current: int, replicas: int, *limits: LimitApplied, traffic: bool = True
) -> Decision:
    latency = Signal(freshness=Freshness.FRESH, value=1.0) if traffic else Signals().latency_s
    return Decision(
        time_s=now_s,
        current=current,
        replicas=replicas,
        direction=Direction.NONE if current == replicas else Direction.DOWN,
        reason=Reason.LATENCY_MODEL,
        message="so it is",
        limits=limits,
        counts=ReplicaCounts(ready=current),
        signals=Signals(latency_s=latency),
    )


def test_token_slo_when_none_is_set_changes_nothing() -> None:
    slo = ServiceLevel.model_validate({"latency": {"target": "5s"}})
    promises = measured(0.7).observe(slo, pages(counts(0, 0, 9, 9, 9)), 9.0)
    assert promises is NO_TOKEN_SLO
    assert promises.adjust_policy(POLICY) is POLICY
    decided = decision(9.0, 4, 2)
    assert promises.removal_objection(decided) == ""
    assert promises.update(POLICY, decided) is promises
    assert promises.to_checkpoint() == {}


def test_capacity_factor_when_missed_grows_by_the_logarithm_of_the_miss() -> None:
    promises = measured(0.39)  # within 200 to 400 ms: the 90th percentile is 0.38
    assert [one.value_s for one in promises.measured] == [pytest.approx(0.38)]
    for now_s in (2.0, 4.0, 62.0, 64.0, 92.0):
        promises = promises.update(POLICY, decision(now_s, 3, 3))
    # the same three served since 2 s, so it is learned from 62 s on: 30 of 58 s, then 2, then 28
    expected = math.exp(60.0 / 300.0 * math.log(0.38 / 0.2))
    assert promises.capacity_factor == pytest.approx(expected)
    acting = promises.adjust_policy(POLICY)
    assert acting.capacity_factor == pytest.approx(expected)
    assert (acting.utilization_ceiling, acting.tuning) == (0.8, POLICY.tuning)
    assert (acting.latency_target_s, acting.min_replicas) == (5.0, POLICY.min_replicas)
    restarted = TokenSLOController.from_checkpoint(promises.to_checkpoint())
    assert restarted.capacity_factor == pytest.approx(expected, rel=1e-5)


@pytest.mark.parametrize("known", [True, False])
def test_learned_factor_is_dropped_where_the_capacity_for_tokens_is_known(known: bool) -> None:
    part = GenerationDecision(identification=Identification(known=known))
    learned = replace(measured(0.19), logarithm=0.5)
    after = learned.update(POLICY, replace(decision(2.0, 3, 3), generation=part))
    assert (after.logarithm, after.to_checkpoint() == {}) == (
        (0.0, True) if known else (0.5, False)
    )


@pytest.mark.parametrize(
    ("ttft_s", "current", "direction"),
    [(0.39, 3, 1), (0.19, 3, 0), (0.05, 3, -1), (0.39, 8, 0), (None, 3, 0)],
    ids=["missed", "kept without much to spare", "easily kept", "at maxReplicas", "not known"],
)
def test_capacity_factor_follows_the_measured_first_token(
    ttft_s: float | None, current: int, direction: int
) -> None:
    before = replace(measured(ttft_s), logarithm=0.5)
    after = before
    for now_s in (0.0, 2.0, 100.0, 102.0):
        after = after.update(POLICY, decision(now_s, current, current))
    assert math.copysign(1, after.logarithm - 0.5) * (after.logarithm != 0.5) == direction


def test_capacity_factor_while_replicas_start_stays() -> None:
    promises = measured(0.39)
    for now_s in (0.0, 100.0, 102.0):
        promises = promises.update(POLICY, decision(now_s, 3, 5))
    assert promises.capacity_factor == 1.0


YIELDED = LimitApplied(limit=Reason.YIELDED_TO_PRIORITY, before=4, after=2)


@pytest.mark.parametrize(
    ("ttft_s", "decided", "expected"),
    [
        (0.39, decision(2.0, 4, 2), 4),
        (0.19, decision(2.0, 4, 2), 2),
        (None, decision(2.0, 4, 2), 4),
        (None, decision(2.0, 4, 2, traffic=False), 2),
        (0.39, decision(2.0, 4, 2, YIELDED), 2),
        (0.39, decision(2.0, 4, 6), 6),
        (0.39, decision(2.0, 10, 2), 8),
    ],
    ids=["missed", "kept", "unknown", "idle", "yields", "more anyway", "above maxReplicas"],
)
def test_removal_while_token_slo_is_missed_or_unknown_is_held(
    ttft_s: float | None, decided: Decision, expected: int
) -> None:
    state = State.initial()
    moved = replace(state, decided=decided.replicas)
    inputs = PostRuleInputs(token_slo_objection=measured(ttft_s).removal_objection(decided))
    after, kept = apply_post_rules(POLICY, state, (decided, moved), inputs)
    assert after.replicas == expected
    assert kept.decided == expected
    if expected != decided.replicas:
        assert after.reason is Reason.SCALE_DOWN_MARGIN
        assert "p90 of time to first token is" in after.message


class Generators(Pods):
    """vLLM whose first token takes 0.1 s per request a second, and whose answers take 400 ms."""

    def _page(self, pod: Manifest) -> str:
        super()._page(pod)
        served, _ = self._served[pod["metadata"]["uid"]]
        name = pod["metadata"]["labels"]["headroom.dev/inference-service"]
        share = self.arrivals_rps.get(name, 0.0) / max(len(self.ready(name)), 1)
        label, number = 'model_name="m"', int(served)
        firsts = [f"{bound:g}" for bound in (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.8, 1.0, 2.0)]
        lines = [
            f"vllm:num_requests_waiting{{{label}}} 0",
            f"vllm:num_requests_running{{{label}}} {round(share * 0.4)}",
            f'vllm:request_success_total{{{label},finished_reason="stop"}} {number}',
            f"vllm:request_inference_time_seconds_sum{{{label}}} {number * 0.4}",
            f'vllm:e2e_request_latency_seconds_bucket{{{label},le="0.5"}} {number}',
            f'vllm:e2e_request_latency_seconds_bucket{{{label},le="+Inf"}} {number}',
        ]
        earlier = self._firsts.setdefault(pod["metadata"]["uid"], [0] * (len(firsts) + 1))
        new = number - earlier[-1]
        for place, bound in enumerate([*firsts, "+Inf"]):
            earlier[place] += new * (0.1 * share <= float(bound))
            lines.append(
                f'vllm:time_to_first_token_seconds_bucket{{{label},le="{bound}"}} {earlier[place]}'
            )
        return "\n".join(lines) + "\n"

    _firsts: dict[str, list[int]]

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self._firsts = {}


class GeneratingWorld(World):
    def start_operator(self) -> None:
        self.pods = Generators(self.cluster, self.clock)
        super().start_operator()


@pytest.mark.parametrize(
    ("decided_s", "known", "missed"),
    [
        pytest.param(0.18, True, False, id="the decision finds it kept"),
        pytest.param(0.25, True, True, id="the decision finds it missed"),
        pytest.param(0.18, False, True, id="by batches: an even spread counts"),
        pytest.param(None, True, True, id="the decision has not measured it"),
    ],
)
def test_target_between_two_bounds_counts_as_the_decision_splits_the_bucket(
    decided_s: float | None, known: bool, missed: bool
) -> None:
    first = TokenMeasurement(
        target=Target(percentile=0.9, seconds=0.2),
        measured_s=decided_s,
        late_share=None,
        expected_s=None,
        floor_s=None,
    )
    part = GenerationDecision(identification=Identification(known=known), first_token=first)
    decided = replace(decision(2.0, 3, 2), generation=part)
    found = measured(0.3).split_by(decided)
    assert found.measured[0].missed is missed
    assert bool(found.removal_objection(decided)) is missed


def test_what_the_decision_has_not_measured_is_shown_as_the_pages_count_it() -> None:
    first = TokenMeasurement(
        target=Target(percentile=0.9, seconds=0.2),
        measured_s=None,
        late_share=None,
        expected_s=None,
        floor_s=None,
    )
    part = GenerationDecision(identification=Identification(known=False), first_token=first)
    found = measured(0.3).measured
    shown = completed(replace(decision(2.0, 3, 2), generation=part), found)
    assert shown.generation is not None
    assert shown.generation.first_token == replace(first, measured_s=found[0].value_s)
    assert shown.generation.output_token is None


def test_missed_first_token_adds_replicas_until_met() -> None:
    async def scenario(world: World) -> None:
        world.create(
            runtime={"profile": "vllm", "maxBatchSize": 16},
            model={"name": "m"},
            slo={
                "latency": {"target": "2s"},
                "timeToFirstToken": {"percentile": 95, "target": "500ms"},
            },
        )
        world.pods.arrivals_rps["resnet"] = 18.0
        await world.run_for(120.0)
        assert world.replicas() == 2, "its latency needs no more"
        assert world.condition("SLOMet") == ("False", "AboveTarget")
        assert "p95 of time to first token is" in world.message("SLOMet")
        await world.run_for(2400.0)
        # 18/s at 5/s each: 4 replicas answer within 450 ms
        assert world.replicas() >= 4
        assert world.condition("SLOMet") == ("True", "WithinTarget")
        assert world.status()["signals"]["timeToFirstToken"] == "495ms"
        found, room = world.recorder.tokens[-1]
        assert found["timeToFirstToken"] == pytest.approx(0.5, abs=0.01)
        assert room > 1.0
        assert '"tokenRoom"' in world.status()["checkpoint"]

    play(scenario, kind=GeneratingWorld)


COARSE_S = (0.25, 0.5, 1.0, 2.5, math.inf)
"""Some of vLLM's bounds of the time to first token."""


def between(ttft_s: float, target: str) -> TokenSLOController:
    """After 200 requests that took so long, as vLLM counts them."""
    slo = ServiceLevel.model_validate(
        {"latency": {"target": "5s"}, "timeToFirstToken": {"percentile": 90, "target": target}}
    )
    promises, empty = NO_TOKEN_SLO, (0.0,) * len(COARSE_S)
    for counted in (empty, tuple(200.0 * (ttft_s <= bound) for bound in COARSE_S)):
        page = LatencyCounts(bounds_s=COARSE_S, counts=counted)
        promises = promises.observe(slo, pages(page), 2.0)
    return promises


@pytest.mark.parametrize(
    ("target", "missed", "grows", "text"),
    [
        pytest.param("1500ms", False, False, "is at least 1s and at most 2.5s", id="in the bucket"),
        pytest.param("1s", True, True, "is 2.35s", id="at its lower bound"),
        pytest.param("2500ms", False, False, "is 2.35s", id="at its upper bound"),
    ],
)
def test_target_in_the_wide_bucket_of_the_percentile_is_neither_missed_nor_kept(
    target: str, missed: bool, grows: bool, text: str
) -> None:
    """All take 1.1 s; spread evenly over the bucket, their 90th percentile would be 2.35 s."""
    promises = between(1.1, target)
    assert promises.measured[0].missed is missed
    assert text in promises.measured[0].message
    decided = decision(2.0, 4, 2)
    assert bool(promises.removal_objection(decided)) is (missed or not promises.measured[0].decided)
    for now_s in (2.0, 62.0, 64.0, 92.0):
        promises = promises.update(POLICY, decision(now_s, 3, 3))
    assert (promises.capacity_factor > 1.0) is grows
