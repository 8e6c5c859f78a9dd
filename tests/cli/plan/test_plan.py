"""`headroom plan`, as a user types it: worked figures, refusals, files, and a live server."""

from __future__ import annotations

from pathlib import Path

import pytest
from typer.testing import CliRunner

from cli.plan.plans import plan, report
from headroom.cli.app import app

pytestmark = pytest.mark.clock

BATCH = "--batch-overhead 6ms --per-item-time 4ms --max-batch 8"


@pytest.mark.parametrize(
    ("line", "says"),
    [
        (
            "rate 400 --service-time 50ms --slots 32",
            ["640 req/s", "62.5 %", "20 concurrent executions"],
        ),
        (
            "rate 50 --service-time 2s --slots 8 --headroom 0.2",
            ["4 req/s, 3.2 below", "19 (of the arrivals) to 20 (of the 16", "100 concurrent"],
        ),
        (
            f"rate 400 {BATCH} --target 120ms",
            ["3 replicas for 400 req/s (latency and the 80 % utilization ceiling both require 3)"],
        ),
        (
            f"rate 1000 {BATCH} --target 40ms --max-utilization 0.95",
            ["9 replicas for 1000 req/s (latency; the 95 % utilization ceiling requires 5)"],
        ),
        (
            f"rate 1000 {BATCH} --target 60ms --max-utilization 0.5",
            ["10 replicas for 1000 req/s (the 50 % utilization ceiling; latency requires 7)"],
        ),
        (f"rate 2 {BATCH}", ["1 replica: nothing is served while it restarts"]),
        (
            "generation 0.1 --prompt 100 --answer 20 --on qwen3-32b/2xh100 --first-token 3s",
            ["1 replica: nothing is served while it restarts"],
        ),
        (f"rate 1000 {BATCH}", ["6 replicas", "(the 80 % utilization ceiling; no latency target)"]),
        ("rate 50 --service-time 2s --slots 8", ["16 replicas", "of all: 51.2 within"]),
        (
            "rate 600 --service-time 12ms --slots 2 --max-utilization 0.7 --headroom 0.2",
            ["7 replicas", "116.7 below the ceiling"],
        ),
        ("rate 10 --service-time 2s --slots 8 --max-utilization 0.95", ["3 replicas"]),
        (
            f"rate 100 {BATCH} --wait 20ms",
            ["210.5 req/s", "38 ms when full", "wait of 20 ms: 58 ms"],
        ),
        ("queue --rate 100", ["11.1 ms", "14.3 ms", "1000 ms", "18.05", "91.6 %"]),
        ("fan-out", ["p99.50", "p99.80", "p99.90", "p99.95"]),
        (
            (
                "budget --stage rest=30ms --stage model=70ms --target 1s "
                "--speedup model=2 --speedup model=10"
            ),
            ["1.54x", "2.70x", "slowest stage: model (70 %)"],
        ),
        ("kv-cache --layers 32 --width 4096", ["0.5 MiB per token", "2 GiB for 4096 tokens"]),
        (  # Qwen3 32B: heads of 128, while 5120 / 64 is 80; 262 kB per token
            (
                "kv-cache --layers 64 --width 5120 --heads 64 --kv-heads 8 --head-dim 128 "
                "--memory 134.1 --weights 61"
            ),
            ["0.25 MiB per token", "299417 tokens fit", "--kv-tokens 299417", "73 sequences"],
        ),
        (
            (
                "feasibility --rate 100 --peak-rate 300 --cold-start 180s --target 1s "
                "--batch-overhead 32ms --per-item-time 4ms --max-batch 8"
            ),
            ["at most 96 %", "31200 of 780000", "93.", "3 for 99 %"],
        ),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_plan_of_worked_example_prints_its_figures(line: str, says: list[str]) -> None:
    result = plan(line)
    assert result.exit_code == 0, result.stderr
    for words in says:
        assert words in result.stdout


def test_plan_rate_reports_one_fewer_and_one_more() -> None:
    found = report(f"rate 400 {BATCH} --target 120ms")
    assert found["plan"]["replicas"] == 3
    assert found["plan"]["waitSeconds"] == 0
    assert found["plan"]["fullRps"] == pytest.approx(210.526, abs=0.001)
    rows = found["plan"]["expected"]
    assert [row["replicas"] for row in rows] == [2, 3, 4]
    assert [row["meetsSlo"] for row in rows] == [False, True, True]
    assert [row["gpuHoursPerDay"] for row in rows] == [48, 72, 96]
    assert rows[1]["p50Seconds"] < rows[1]["p95Seconds"] < rows[1]["p99Seconds"] < 0.120


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ("", "for --cv 1 and --routing random; --routing least needs 5\n"),
        ("--cv 0.1", "for --cv 0.1 and --routing random; --routing least needs 4\n"),
        ("--routing least", "for --cv 1 and --routing least\n"),
    ],
)
def test_plan_that_latency_binds_says_for_which_variation_and_routing(
    given: str, said: str
) -> None:
    shown = plan(f"rate 60 --service-time 45ms --target 180ms {given}").stdout
    assert said in shown
    assert "--routing" not in plan(f"rate 60 --service-time 45ms {given}").stdout


def test_unbounded_latency_is_null_in_json_and_unbounded_as_text() -> None:
    line = "rate 220 --batch-overhead 6ms --per-item-time 4ms --max-batch 8 --max-utilization 0.95"
    assert report(line)["plan"]["expected"][0]["p95Seconds"] is None
    assert "unbounded" in plan(line).stdout


def test_plan_for_200_per_second_chooses_batch_and_no_wait() -> None:
    line = f"rate 200 {BATCH} --max-batch 32 --target 120ms --max-utilization 0.9"
    found = report(line)["plan"]
    assert found["replicas"] == 1
    assert 12 <= found["maxBatch"] <= 24
    assert found["waitSeconds"] == 0
    assert found["expected"][0]["p95Seconds"] <= 0.120


@pytest.mark.parametrize(
    ("line", "says"),
    [
        (f"rate -3 {BATCH}", "No such option: -3"),
        (f"rate abc {BATCH}", "'RATE': must be a number; got 'abc'"),
        ("generation 1 --prompt 9 --answer 9 --on foo", "--on must be one of llama-8b/h100, "),
        (
            f"feasibility --rate 200 --peak-rate 100 --cold-start 60s --target 1s {BATCH}",
            "--peak-rate must be at least --rate; got 100 and 200",
        ),
        (f"rate nan {BATCH}", "the arrival rate must be above 0 and finite; got nan"),
        (f"rate 3 {BATCH} --target 5ms", "at least 10 ms (the time of a single request); got 5 ms"),
        (
            f"rate 3 {BATCH} --max-utilization 0",
            "the utilization ceiling must be above 0 and at most 0.95",
        ),
        (f"rate 3 {BATCH} --max-utilization 1.2", "at most 0.95; got 1.2"),
        (f"rate 3 {BATCH} --percentile 0.95", "--percentile must be at least 1 and below 100"),
        (f"rate 3 {BATCH} --target 120", "--target: a duration must be numbers with units"),
        (f"rate 3 {BATCH} --routing best", "--routing must be one of random, sticky"),
        (f"rate 3 {BATCH} --service-time 1s", "either --service-time or a batch cost"),
        (f"rate 3 {BATCH} --out curve.txt", "--out must end with .svg, .png, .pdf"),
        ("rate 3", "the cost of a replica must be given"),
        ("rate 3 --batch-overhead 0s", "the time of a single request must be above 0"),
        (
            "rate 3 --batch-overhead 6ms --max-batch 0",
            "the maximum batch size must be between 1 and 1024",
        ),
        (f"trace absent.csv {BATCH}", "the trace must be a file or one of azfunc2019"),
        (f"trace azure_llm_conv {BATCH}", "Did you mean azure_llm_2023_conv?"),
        ("measure http://127.0.0.1:9", "Missing option '--target'"),
        ("measure localhost --target 1s", "the server must have an http or https URL"),
        ("fan-out --calls 0", "the number of calls must be at least 1; got 0"),
        ("queue --rate 100 --utilization 1", "utilization must be at least 0 and below 1; got 1"),
        ("budget --stage model --target 1s", "a stage must be name=value; got 'model'"),
        ("budget --stage a=1s --target 1s --speedup b=2", "must name a stage of a; got b"),
        ("kv-cache --layers 0 --width 1", "the number of layers must be at least 1; got 0"),
        (
            "kv-cache --layers 1 --width 1 --memory 8 --weights 9",
            "the weights must be smaller than the memory of 8 GiB",
        ),
        (
            "kv-cache --layers 32 --width 4096 --tokens 200000 --memory 80 --weights 16",
            "the memory must hold a sequence of 200000 tokens besides the weights; got room for",
        ),
        (
            "kv-cache --layers 1 --width 8 --heads 64 --kv-heads 7",
            "attention heads must be a multiple of the key-value heads (7); got 64. Read both",
        ),
        ("kv-cache --layers 1 --width 8 --heads 8 --kv-heads 0", "must be at least 1; got 0"),
        (
            "kv-cache --layers 1 --width 8 --head-dim 8",
            "--heads, which --head-dim applies to, must",
        ),
    ],
)
def test_plan_of_invalid_input_exits_with_2(line: str, says: str) -> None:
    result = plan(line)
    assert result.exit_code == 2
    assert says in result.stderr
    assert result.stdout == ""


def test_plan_without_command_prints_help() -> None:
    result = plan("")
    assert result.exit_code == 2
    assert "headroom plan measure" in result.stdout
    assert plan("--help").exit_code == 0


def test_plan_trace_reads_shipped_traces_and_files(tmp_path: Path) -> None:
    found = report(f"trace azfunc2019_all497_60s {BATCH} --target 120ms --cold-start 90s")
    trace = found["trace"]
    assert trace["windows"] == 480
    assert trace["peakReplicas"] == max(trace["replicas"]) == trace["peakGpus"]
    assert trace["gpuHours"] <= trace["gpuHoursAhead"] <= trace["gpuHoursStaticPeak"]
    assert 0.9 < trace["feasibility"]["attainmentAtMost"] <= 1

    path = tmp_path / "load.csv"
    path.write_text("t_s,requests\n0,6000\n60,18000\n120,6000\n")
    line = f"trace {path} --batch-overhead 32ms --per-item-time 4ms --max-batch 8 --target 1s"
    assert report(line)["trace"]["replicas"] == [1, 3, 1]
    assert report(line + " --scale 2")["trace"]["replicas"] == [2, 6, 2]
    assert report(line + " --min-replicas 2")["trace"]["replicas"] == [2, 3, 2]


def test_plan_trace_of_requests_counts_them_by_window(tmp_path: Path) -> None:
    path = tmp_path / "requests.csv"
    rows = [f"{0.01 * number:.2f}" for number in range(12_000)]  # 100/s for 120 s
    path.write_text("\n".join(["arrival_s", *rows]) + "\n")
    line = f"trace {path} --batch-overhead 32ms --per-item-time 4ms --max-batch 8 --window 60s"
    assert report(line)["trace"]["replicas"] == [1, 1]


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("arrival_s\n0\n1e15\n", "must have at most 10000000 windows"),
        ("t_s,requests\n0,1e300\n60,1e300\n", "must have at most 1e+08 req/s"),
    ],
)
def test_plan_of_trace_beyond_every_load_is_refused(tmp_path: Path, text: str, says: str) -> None:
    path = tmp_path / "load.csv"
    path.write_text(text)
    result = plan(f"trace {path} {BATCH}")
    assert result.exit_code == 2
    assert says in result.stderr


def test_plan_of_malformed_trace_names_file_line_and_rule(tmp_path: Path) -> None:
    path = tmp_path / "load.csv"
    path.write_text("t_s,requests\n0,6000\n60,-1\n")
    result = plan(f"trace {path} {BATCH}")
    assert result.exit_code == 2
    assert "load.csv, line 3" in result.stderr


@pytest.mark.parametrize(("ending", "begins"), [("svg", b"<?xml"), ("png", b"\x89PNG")])
def test_plan_rate_with_out_draws_the_curve(tmp_path: Path, ending: str, begins: bytes) -> None:
    path = tmp_path / "new" / f"curve.{ending}"
    line = f"rate 400 {BATCH} --target 120ms --out {path} --curve"
    drawn = plan(line)
    assert "utilization" in drawn.stdout
    assert drawn.stderr == f"wrote {path}\n"
    first = path.read_bytes()
    assert first.startswith(begins)
    plan(line)
    assert path.read_bytes() == first


def test_plan_on_a_narrow_terminal_cuts_no_heading() -> None:
    result = CliRunner(env={"COLUMNS": "60"}).invoke(
        app, ["plan", "rate", "200", *BATCH.split(), "--target", "120ms"]
    )
    assert "replicas  utilization      p50      p95      p99  GPU-h/day  meets SLO" in result.stdout
