"""`headroom simulate`: options, runs, messages, and files that are left when it ends."""

from __future__ import annotations

import io
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest
from rich.console import Console
from typer.testing import CliRunner, Result

from headroom.cli.app import app
from headroom.cli.cluster_options import Output
from headroom.cli.commands.simulate.campaign import listed, simulate
from headroom.cli.commands.simulate.options import SimulationOptions
from headroom.cli.commands.simulate.planned_runs import Misuse, Ports, runs_of
from headroom.simulator.autoscalers.fixed import StaticPeak
from headroom.simulator.report.json_report import read
from support import fakes_simulation

NAMES = ("headroom", "hpa", "keda", "clairvoyant", "refused", "broken", "dying", "interrupting")
GRIDS: Mapping[str, Sequence[Mapping[str, float]]] = {"hpa": ({}, {"target": 2.0})}


@dataclass(frozen=True)
class Known:
    summary: str = "Doubles the replicas."
    knobs: Mapping[str, float | str] = field(
        default_factory=lambda: {"target": 1.0, "x": 0.0, "without": ""}
    )

    @property
    def check(self) -> Callable[[str, float | str], None]:
        return StaticPeak.check


@pytest.fixture
def ports(tmp_path: Path) -> Ports:
    for name in ("step", "ramp"):
        (tmp_path / f"{name}.toml").write_text(
            f"# A {name}\n# to the top.\n#\n# no\nname = 1\n# no\n"
        )
    return Ports(
        scenarios={name: tmp_path / f"{name}.toml" for name in ("step", "ramp")},
        check=fakes_simulation.read_text,
        autoscalers={name: Known() for name in NAMES},
        grids=GRIDS,
        components=("burst", "correction"),
        perform=fakes_simulation.perform,
    )


@dataclass(frozen=True)
class Said:
    code: int
    out: str
    err: str


def run(request: SimulationOptions, ports: Ports) -> Said:
    out, err = Console(width=170, file=io.StringIO()), Console(width=170, file=io.StringIO())
    code = simulate(request, ports, out, err)
    texts = [console.file.getvalue() for console in (out, err)]  # type: ignore[attr-defined]
    return Said(code, *texts)


def ask(
    *scenarios: str, autoscalers: Sequence[str] = ("headroom", "clairvoyant")
) -> SimulationOptions:
    return SimulationOptions(scenario=[*scenarios], autoscalers=[*autoscalers], jobs=1)


def test_simulate_prints_table_and_writes_reports(ports: Ports, tmp_path: Path) -> None:
    said = run(replace(ask("step"), out=[tmp_path / "made" / "here"]), ports)
    assert said.code == 0
    assert "step: vision, p95 within 100 ms, 1 seed" in said.out
    assert "1.25" in next(line for line in said.out.splitlines() if "headroom" in line)
    assert said.err.count("wrote ") == 2
    outcomes = read((tmp_path / "made" / "here" / "report.json").read_text())
    assert [each.autoscaler for each in outcomes] == ["headroom", "clairvoyant"]
    assert "<!doctype html>" in (tmp_path / "made" / "here" / "report.html").read_text()


def test_simulate_with_json_output_prints_the_report(ports: Ports) -> None:
    said = run(replace(ask("step"), output=Output.JSON), ports)
    assert [each.autoscaler for each in read(said.out)] == ["headroom", "clairvoyant"]


def test_runs_cover_scenarios_autoscalers_and_seeds_once(ports: Ports) -> None:
    request = replace(ask("step", "ramp", "step", autoscalers=("hpa", "hpa", "keda")), seeds=2)
    runs = [(each.seed, each.scenario.stem, each.autoscaler) for each in runs_of(request, ports)]
    assert runs == [
        (seed, scenario, autoscaler)
        for seed in (1, 2)
        for scenario in ("step", "ramp")
        for autoscaler in ("hpa", "keda")
    ]


def test_runs_by_default_are_the_usual_autoscalers(ports: Ports) -> None:
    usual = runs_of(ask("step", autoscalers=()), ports)
    assert [each.autoscaler for each in usual] == ["headroom", "keda", "clairvoyant"]
    assert len(runs_of(ask("step", autoscalers=("all",)), ports)) == len(NAMES)


def test_knob_applies_to_the_autoscaler_it_names(ports: Ports) -> None:
    request = replace(
        ask("step", autoscalers=("hpa", "keda")), knobs=["hpa.target=2", "keda.without=a"]
    )
    assert [dict(each.knobs) for each in runs_of(request, ports)] == [
        {"target": 2.0},
        {"without": "a"},
    ]
    alone = replace(ask("step", autoscalers=("hpa",)), knobs=["target=0.5"])
    assert dict(runs_of(alone, ports)[0].knobs) == {"target": 0.5}


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        ({"scenario": ["stepp"]}, "one of: step, ramp; got 'stepp'"),
        ({"scenario": ["mine.toml"]}, "must be a file that exists, here /.*; got 'mine.toml'"),
        ({"autoscalers": ("hpaa",)}, "an autoscaler must be one of: headroom, hpa, .*'hpaa'"),
        ({"knobs": ("target",)}, "NAME=VALUE"),
        ({"knobs": ("target=",)}, "NAME=VALUE"),
        ({"knobs": ("target=1",)}, "must name its autoscaler, as in headroom.target=1"),
        ({"knobs": ("keda.target=1",)}, "one of the autoscalers .*; got 'keda'"),
        ({"knobs": ("headroom.x=a",)}, "--knob headroom.x must be a number; got 'a'"),
        ({"knobs": ("headroom.x=-5",)}, "x must be a number > 0; got -5"),
        ({"out": (Path("r.txt"),)}, "--out must be a folder, .json or .html; got r.txt"),
        ({"knobs": ("headroom.x=1",), "sweep": True}, "leave out --knob"),
        ({"ablate": True}, "--ablate runs only Headroom"),
    ],
)
def test_simulate_of_invalid_request_fails_before_first_run(
    change: Mapping[str, object], complaint: str, ports: Ports
) -> None:
    with pytest.raises(Misuse, match=complaint):
        run(replace(ask("step"), **change), ports)  # type: ignore[arg-type]


def test_simulate_with_folder_in_place_of_report_fails_before_first_run(
    ports: Ports, tmp_path: Path
) -> None:
    (tmp_path / "r.json").mkdir()
    with pytest.raises(IsADirectoryError, match="name a file in it"):
        run(replace(ask("step", autoscalers=("dying",)), out=[tmp_path / "r.json"]), ports)


def test_failed_run_is_named_and_rest_reported(ports: Ports, tmp_path: Path) -> None:
    request = replace(
        ask("step", autoscalers=("refused", "hpa", "broken")), out=[tmp_path / "r.json"]
    )
    said = run(request, ports)
    assert said.code == 1
    assert "error: step, refused, seed 1: target must be a number > 0; got 0" in said.err
    assert "error: step, broken, seed 1: ZeroDivisionError: division by zero" in said.err
    assert "2 runs of 3 failed" in said.err
    assert [each.autoscaler for each in read((tmp_path / "r.json").read_text())] == ["hpa"]


def test_interrupted_simulation_reports_finished_runs(ports: Ports, tmp_path: Path) -> None:
    request = ask("step", autoscalers=("hpa", "keda", "interrupting", "headroom"))
    said = run(replace(request, out=[tmp_path / "r.json"]), ports)
    assert said.code == 130
    assert "interrupted: 2 of 4 runs finished; the reports contain these" in said.err
    assert [e.autoscaler for e in read((tmp_path / "r.json").read_text())] == ["hpa", "keda"]


def test_interrupt_before_first_result_keeps_old_report(ports: Ports, tmp_path: Path) -> None:
    (tmp_path / "r.json").write_text("old")
    request = replace(ask("step", autoscalers=("interrupting",)), out=[tmp_path / "r.json"])
    said = run(request, ports)
    assert said.code == 130
    assert "nothing is reported" in said.err
    assert (tmp_path / "r.json").read_text() == "old"


def test_parallel_runs_give_the_same_report(ports: Ports, tmp_path: Path) -> None:
    request = replace(ask("step", "ramp"), seeds=2, out=[tmp_path / "one.json"])
    one = run(request, ports)
    several = run(replace(request, jobs=2, out=[tmp_path / "two.json"]), ports)
    assert (one.code, several.code) == (0, 0)
    assert several.out == one.out
    assert (tmp_path / "two.json").read_bytes() == (tmp_path / "one.json").read_bytes()


def test_dead_worker_is_a_failed_run(ports: Ports) -> None:
    said = run(replace(ask("step", autoscalers=("dying", "hpa")), jobs=2), ports)
    assert said.code == 1
    assert "step, dying, seed 1: ChildProcessError: a worker ended abruptly" in said.err


def test_sweep_shows_front_of_each_peer(ports: Ports) -> None:
    said = run(replace(ask("step", autoscalers=("headroom", "hpa")), sweep=True), ports)
    assert said.code == 0
    assert "best front of each peer" in said.out
    assert "No setting of 2 beats Headroom" in said.out


def test_ablation_runs_headroom_without_each_component(ports: Ports) -> None:
    said = run(replace(ask("step", autoscalers=()), ablate=True), ports)
    assert said.code == 0
    row = next(line for line in said.out.splitlines() if line.startswith("burst"))
    assert row.split() == ["burst", "97.00", "%", "+1.00", "1.125", "+0.00"]
    assert any(line.startswith("correction") for line in said.out.splitlines())


TINY = """
name = "tiny"

[[service]]
name = "vision"

[service.arrivals]
generator = "stages"
stages = [{ duration = "90s", rps = 20 }]

[service.server]
fixed = "20ms"
per_item = "2ms"
max_batch = 8

[service.slo]
target = "250ms"

[service.scaling]
min_replicas = 1
max_replicas = 4

[service.cold_start]
total = "20s"
"""


def headroom(*arguments: str) -> Result:
    return CliRunner().invoke(app, ["simulate", *arguments])


def test_simulation_of_scenario_file_is_deterministic(tmp_path: Path) -> None:
    file = tmp_path / "tiny.toml"
    file.write_text(TINY)
    for name in ("one", "two"):
        result = headroom(
            str(file), "-a", "keda", "-a", "clairvoyant", "-j", "1", "--out", str(tmp_path / name)
        )
        assert result.exit_code == 0, result.output
        assert "tiny: vision, p95 within 250 ms" in result.stdout
    for report in ("report.json", "report.html"):
        one, two = ((tmp_path / name / report).read_bytes() for name in ("one", "two"))
        assert one == two


def test_malformed_scenario_names_file_and_line(tmp_path: Path) -> None:
    file = tmp_path / "tiny.toml"
    file.write_text(TINY.replace("max_batch = 8", "max_batch = 0"))
    result = headroom(str(file), "--out", str(tmp_path / "r.json"))
    assert result.exit_code == 1
    assert "tiny.toml, line 14" in result.stderr
    assert not (tmp_path / "r.json").exists()


def test_unknown_knob_fails_with_the_known_ones(tmp_path: Path) -> None:
    file = tmp_path / "tiny.toml"
    file.write_text(TINY)
    result = headroom(str(file), "-a", "keda", "-k", "taget=1", "-j", "1")
    assert result.exit_code == 2
    assert "got 'taget'" in " ".join(result.stderr.split())


def test_list_shows_scenarios_and_parameters(ports: Ports) -> None:
    console = Console(width=170, file=io.StringIO())
    console.print(listed(ports))
    said = console.file.getvalue()  # type: ignore[attr-defined]
    assert "A step to the top." in said
    assert "no" not in said.split()
    assert "Doubles the replicas." in said
    assert "target=1.0" in said


def test_invalid_usage_exits_with_2() -> None:
    assert headroom("nowhere").exit_code == 2
    assert headroom("--seeds", "2").exit_code == 2
    listed = headroom("--list")
    assert listed.exit_code == 0
    assert "clairvoyant" in listed.stdout
    assert "llm-hour" in listed.stdout
