"""`headroom plan generation` as a user types it: text, JSON and refusals."""

from __future__ import annotations

from dataclasses import replace

import pytest

from cli.plan.plans import plan, report
from headroom.planner.errors import ImpossiblePlan
from headroom.planner.generation.token_plan import plan_generation
from planner.generation_plans import LINE, PUBLISHED


def test_plan_generation_prints_replicas_what_binds_and_settings() -> None:
    result = plan(LINE + " --first-token 3s --output-token 100ms --gpu-price 3")
    assert result.exit_code == 0, result.stderr
    for text in ("Memory binds", "GPU-hours a day", "per million generated tokens", "speculation"):
        assert text in result.stdout


def test_plan_generation_names_settings_whole_and_the_percentiles() -> None:
    """A table of 80 columns cut them: --max-num-bat… and the like."""
    text = plan(LINE + " --first-token 3s --output-token 100ms").stdout
    for name in ("--max-num-seqs", "--max-num-batched-tokens", "--max-num-queued-tokens"):
        assert name in text
    assert "(p95); 47 sequences at once, 72 % of the KV tokens (p99)" in text
    assert "99 % of the time at most" in text


def test_expected_times_are_of_the_percentile_with_and_without_a_promise() -> None:
    loose = report(LINE + " --first-token 1m --output-token 1m")["expected"]
    assert report(LINE)["expected"] == loose


def test_parts_of_a_cost_that_are_not_given_are_usual_and_not_zero() -> None:
    """Contexts are most of the work of 1000 tokens decoded after 4000."""
    given = "generation 10 --prompt 4000 --answer 1000 --iteration-ms 14 --prompt-token-ms 0.05"
    found = report(given)
    usual = report(given + " --sequence-ms 0.04 --context-token-ms 9e-5")
    assert found["replicas"] == usual["replicas"]
    assert found["replicas"] > report(given + " --sequence-ms 0 --context-token-ms 0")["replicas"]
    assert [one.split(":")[0] for one in found["cost"]["unknown"]] == [
        "--sequence-ms",
        "--context-token-ms",
    ]
    assert usual["cost"]["unknown"] == []


def test_plan_generation_as_json_has_every_bound() -> None:
    found = report(LINE + " --first-token 3s --output-token 100ms")
    assert found["binds"] == "Memory"
    assert set(found["bounds"]) == {
        "Memory",
        "Seats",
        "TimeToFirstToken",
        "TimePerOutputToken",
        "Utilization",
    }
    assert found["gpus"] == 2 * found["replicas"]


def test_plan_is_of_a_service_without_a_gateway_unless_routing_says_otherwise() -> None:
    """Simulated, nine replicas at random keep the promise for 93 % of the requests, ten for 98."""
    line = "generation 10 --prompt 4000 --answer 1000 --on qwen3-32b/2xh100 --first-token 3s"
    at_random, level = report(line), report(line + " --routing least")
    assert (at_random["replicas"], level["replicas"]) == (10, 9)
    routing = {one["name"]: one for one in at_random["settings"]}["routing"]
    assert "routing.mode: Service" in routing["value"]
    assert routing["effect"] == "with routing.mode Gateway: 10 -> 9 replicas"


@pytest.mark.parametrize(
    ("promises", "says"),
    [
        (
            " --output-token 10ms",
            ["the target of the time per output token must be at least", "; got 10 ms. Raise "],
        ),
        (" --output-token 13ms", ["or a server that speculates (--accepted 1.8); more replicas"]),
        (" --first-token 1ms", ["the time to first token must be", "accelerator; more replicas"]),
        (" --whole-answer 1s", ["the time of the whole answer must be at least"]),
        (
            " --first-token 1ms --output-token 1ms",
            ["the target of the time per output token", "The target of the time to first token"],
        ),
    ],
)
@pytest.mark.parametrize("output", ["", " -o json"])
def test_plan_generation_refuses_a_promise_below_the_floor(
    promises: str, says: list[str], output: str
) -> None:
    result = plan(LINE + promises + output)
    assert (result.exit_code, result.stdout) == (2, "")
    for words in says:
        assert words in result.stderr


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ("generation 10 --prompt 4000 --answer 1000", "the cost of an iteration must be given"),
        (LINE.replace("qwen3-32b/2xh100", "abacus"), "--on must be one of"),
        (LINE + " --cached 1", "--cached must be from 0 to below 1"),
        (LINE.replace("generation 10", "generation 0"), "the arrival rate must be above 0"),
        (LINE + " --accepted 0.5", "--accepted must be at least 1"),
        (LINE + " --first-token 0s", "the target of the time to first token must be above 0"),
        (LINE + " --kv-tokens 0", "the KV tokens must be above 0"),
        (LINE + " --max-sequences -3", "the sequences at once must be above 0"),
        (LINE + " --iteration-tokens 0", "the tokens of an iteration must be above 0"),
        (LINE + " --gpus 0", "the GPUs of a replica must be above 0"),
        (LINE + " --gpu-price nan", "the price of a GPU-hour must be at least 0"),
        (LINE + " --max-utilization 0.99", "the utilization ceiling must be above 0 and at most"),
        (LINE + " --iteration-ms 5", "in one way; got --on and --iteration-ms"),
        (LINE + " --measure http://127.0.0.1:9", "in one way; got --measure and --on"),
        (LINE.replace("--answer 1000", "--answer inf"), "the answer must have at least 1 token"),
        (
            LINE.replace("--answer 1000", "--answer 1") + " --output-token 50ms",
            "answers must have more than 1 token",
        ),
        (
            "generation 10 --prompt 40 --answer 10 --iteration-ms 5",
            "--prompt-token-ms, the other part of the cost, must be given",
        ),
        (
            "generation 10 --prompt 40 --answer 10 --iteration-ms 0 --prompt-token-ms 0",
            "the time of an iteration with a prompt token must be above 0",
        ),
        (  # before the measurement, which takes a minute
            "generation 10 --prompt 40 --answer 10 --measure http://127.0.0.1:9 --first-token 3",
            "--first-token: a duration must be",
        ),
    ],
)
def test_plan_generation_of_wrong_options_says_what_to_change(line: str, says: str) -> None:
    result = plan(line)
    assert result.exit_code == 2
    assert says in result.stderr


def test_plan_of_a_memory_too_small_for_one_request_is_impossible() -> None:
    small = replace(PUBLISHED, limits=replace(PUBLISHED.limits, kv_tokens=2000.0))
    with pytest.raises(ImpossiblePlan, match="the memory must hold a request"):
        plan_generation(small, 1.0)
