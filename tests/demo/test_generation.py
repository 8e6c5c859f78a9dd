"""The demo of generation: display, checks and picture of snapshots and answers."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
import yaml

from demo import layout, readings
from demo.recording import Snapshot
from demo_generation import figure, plan, table
from demo_generation.checks import evaluate
from demo_generation.recording import TokenRecording, bindings, capacity_rps, windows
from demo_generation.report import figures
from demo_generation.show import Writer
from headroom.api.service_spec.spec import Spec
from headroom.scaling.values.tokens import Target
from load.outcomes import Outcome
from load.token_messages import Answer, Began, Promises, TokenMessage, concluded, write
from load.token_plan import requests, steps
from support.demo_world import START_S, decision_body, pod_body, service_body

SLO = {
    "timeToFirstToken": {"percentile": 95, "target": "2s"},
    "timePerOutputToken": {"percentile": 95, "target": "120ms"},
}
GENERATION = {
    "sizedBy": "Model",
    "binding": "TimePerOutputToken",
    "capacityPerReplica": 2.2,
    "engineShare": 0.6,
    "memoryShare": 0.25,
    "generatedTokensPerSecond": 400.0,
    "promptTokensPerSecond": 3200.0,
}
PROMISES = Promises(first_token_s=2.0, output_token_s=0.12)


def answer(number: int, due_s: float, first_s: float = 0.5, token_s: float = 0.08) -> Answer:
    return Answer(
        number=number,
        due_s=due_s,
        late_s=0.002,
        outcome=Outcome.OK,
        prompt_tokens=800,
        output_tokens=101,
        first_token_s=first_s,
        ended_s=first_s + 100 * token_s,
    )


def seen(make: Callable[..., Snapshot], at_s: float, replicas: int, **more: Any) -> Snapshot:
    """A snapshot at a service that generates."""
    generation = more.pop("generation", GENERATION)
    one = make(at_s, replicas, generation=generation, **more)
    body = service_body(generation=generation)
    body["spec"]["slo"] |= SLO
    return replace(one, service=replace(one.service, tokens=readings.service(body).tokens))


@pytest.fixture
def run(snapshot: Callable[..., Snapshot]) -> TokenRecording:
    """A run in which everything holds: 1 → 3 → 2 replicas, an answer each second."""
    pods = [pod_body("a", -20, -12), pod_body("b", 10, 18), pod_body("c", 10, 19)]
    answers = [answer(number, float(number)) for number in range(60)]
    said: list[TokenMessage] = [
        Began(unix_s=START_S, requests=60, duration_s=60.0),
        *answers,
        concluded(answers, PROMISES),
    ]
    made = TokenRecording()
    made.snapshots = [
        seen(snapshot, 5, 1, pods=pods[:1], generation={"sizedBy": "Measurement"}),
        seen(snapshot, 11, 3, pods=pods, decided=decision_body(10, 1, 3), warmingReplicas=2),
        seen(snapshot, 20, 3, pods=pods, decided=decision_body(18, 3, 3), readyReplicas=3),
        seen(snapshot, 40, 2, pods=pods, decided=decision_body(39, 3, 2), readyReplicas=2),
        seen(snapshot, 60, 2, pods=pods[:2], decided=decision_body(58, 2, 2), readyReplicas=2),
    ]
    text = "\n".join(map(write, said))
    made.add_log(text)
    made.add_log(text)
    return made


def failed(run: TokenRecording) -> list[str]:
    return [check.name for check in evaluate(run) if not check.held]


def test_a_good_run_passes_every_check_and_has_its_figures(run: TokenRecording) -> None:
    assert failed(run) == []
    found = dict(figures(run))
    assert found["requests"] == "60: 60 ok"
    assert found["both promises kept"] == "100.0 % of all requests"
    assert found["time to first token"] == "p50 500 ms, p95 500 ms"
    assert found["time per output token"] == "p50 80 ms, p95 80 ms"
    assert found["KV memory"] == "at most 25.0 %"
    assert found["what binds"] == "TimePerOutputToken"
    assert found["capacity of a replica"] == "2.20 requests/s"
    assert found["GPU-seconds"].startswith("160,")


@pytest.mark.parametrize(
    ("worse", "names"),
    [
        ({"token_s": 0.2}, ["share of requests that kept both promises",
                            "p95 time per output token of the last 60 s"]),
        ({"first_s": 3.0}, ["share of requests that kept both promises",
                            "p95 time to first token of the last 60 s"]),
    ],
)  # fmt: skip
def test_a_broken_promise_is_noticed(
    run: TokenRecording, worse: dict[str, float], names: list[str]
) -> None:
    for number in range(10):
        run.answers[number] = answer(number, float(number), **worse)
    assert failed(run) == names


def test_an_answer_that_is_missing_and_a_load_without_a_summary_are_noticed(
    run: TokenRecording,
) -> None:
    del run.answers[59]
    assert failed(run) == ["every request got as many tokens as it asked for"]
    run.concluded = None
    assert failed(run) == ["the load wrote a summary"]


def test_a_service_without_a_learned_cost_fails_its_check(
    run: TokenRecording, snapshot: Callable[..., Snapshot]
) -> None:
    run.snapshots.append(seen(snapshot, 61, 2, generation={"sizedBy": "Measurement"}))
    assert failed(run) == ["the status names what bounds a replica, by the learned cost"]


def test_windows_cover_the_load_and_hold_what_was_due_in_them(run: TokenRecording) -> None:
    found = list(windows(run, 10.0))
    assert [(one.start_s, len(one.answers)) for one in found] == [
        (float(start), 10) for start in range(0, 60, 10)
    ]
    run.answers.clear()
    assert [len(one.answers) for one in windows(run, 25.0)] == [0, 0, 0]


def test_what_binds_and_capacity_are_known_with_the_cost(run: TokenRecording) -> None:
    assert capacity_rps(run.snapshots[0]) is None
    assert capacity_rps(run.snapshots[2]) == pytest.approx(6.6)
    assert bindings(run.snapshots) == [(START_S + 11, "TimePerOutputToken")]


def test_the_table_shows_unknown_values_as_such(
    run: TokenRecording, snapshot: Callable[..., Snapshot]
) -> None:
    rows = {row.name: row for row in table.rows(run.snapshots[2], run)}
    assert rows["time to first token, p95 of 10 s"].now == "500 ms"
    assert rows["time to first token, p95 of 10 s"].bound == "target 2.00 s"
    assert rows["time per output token, p95 of 10 s"].style == layout.GOOD
    assert rows["KV memory"].now == "25.0 %"
    assert rows["what binds"].now == "TimePerOutputToken"
    assert "capacity" not in rows
    before = {row.name: row.now for row in table.rows(snapshot(0, 1), TokenRecording())}
    assert before["arrivals"] == before["what binds"] == before["tokens per second"] == "?"
    assert before["KV memory"] == "unknown"


def test_the_picture_has_load_replicas_tails_and_tokens(run: TokenRecording) -> None:
    drawn = figure.drawn(run, "writer")
    labels = [axes.get_ylabel() for axes in drawn.axes]
    assert labels == [
        "requests / s", "replicas", "p95 first token, s", "p95 per token, s", "tokens / s",
        "KV memory, %",
    ]  # fmt: skip
    texts = [text.get_text() for text in drawn.axes[0].texts]
    assert texts == ["TimePerOutputToken binds"]


def test_the_sample_has_the_promises_and_costs_that_the_plan_states() -> None:
    (body,) = list(yaml.safe_load_all(plan.SAMPLE.read_text()))
    slo = Spec.model_validate(body["spec"]).slo
    assert slo.time_to_first_token is not None
    assert slo.time_per_output_token is not None
    assert slo.time_to_first_token.target.seconds == 2.0
    assert slo.time_per_output_token.target.seconds == 0.12
    variables = {one["name"]: one["value"] for one in body["spec"]["runtime"]["env"]}
    fixed, each, prompt = (
        float(variables[f"HEADROOM_EMULATED_{name}_COST_S"])
        for name in ("FIXED", "PER_ITEM", "PER_TOKEN")
    )
    work_s = plan.LENGTHS.output_tokens * each + plan.LENGTHS.prompt_tokens * prompt
    assert work_s == pytest.approx(0.316)
    means = [fixed / (1 - work_s * rate) for rate in (1.0, 1.6, 2.0, 2.4)]
    assert means == pytest.approx([0.044, 0.061, 0.082, 0.124], rel=0.02)
    assert len(requests(steps(plan.STEPS), plan.LENGTHS, plan.SEED)) == pytest.approx(906, rel=0.1)


def test_the_view_is_laid_out_before_the_load_begins(snapshot: Callable[..., Snapshot]) -> None:
    show = Writer(plan.scene(keep=False))
    assert show.line(snapshot(0, 1)).startswith("   0 s  arrivals ?")
    assert show.view(snapshot(0, 1), show.title("writer"))


def test_token_targets_are_read_where_they_are(snapshot: Callable[..., Snapshot]) -> None:
    assert snapshot(0, 1).service.tokens.first_token is None
    body = service_body()
    body["spec"]["slo"] |= SLO
    tokens = readings.service(body).tokens
    assert tokens.output_token == Target(percentile=0.95, seconds=0.12)
