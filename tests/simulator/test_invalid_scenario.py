"""Scenario files that are wrong: the error names file, line, rule and value, soon and cleanly."""

# ruff: noqa: E501  (a row of a table is one line)

from __future__ import annotations

import re
import time
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headroom.simulator.scenario import Scenario
from headroom.simulator.scenario_file import ScenarioError, load_scenario, parse_scenario
from simulator.scenario_texts import FULL, SMALL

# Each row: what replaces what in SMALL, and what is said; lines counted in SMALL as printed above.
BAD = {
    "no name": ('name = "small"\n', "", "line 1: name: is required"),
    "no TOML": ("rps = 100", "rps = ", "line 7: a scenario must be valid TOML: Invalid value"),
    "a key twice": ("rps = 100", "rps = 100\nrps = 1", "line 8: a scenario must be valid TOML: Cannot overwrite a value"),
    "an open string": ('target = "100ms"\n', 'target = "', "line 13: a scenario must be valid TOML: Unterminated string"),
    "an unknown key": ("rps = 100", "rps = 100\nrate = 1", "line 8: service[0].arrivals.rate: must be one of the keys generator, duration, rps; got 'rate'"),
    "a key with a typo": ("max_batch = 8", "max_bach = 8", "must be one of the keys fixed, per_item, max_batch, slots, cv, spread, advertised; got 'max_bach': did you mean max_batch?"),
    "an unknown table": ("[service.slo]", "[service.budget]\n[service.slo]", "line 12: service[0].budget: must be one of the keys name, arrivals, server"),
    "an unknown key at the top": ('name = "small"', 'name = "small"\nseed = 1', "line 2: seed: must be one of the keys name, tick, cluster, service, fault"),
    "no service": (SMALL, 'name = "x"\nservice = []', "line 2: service: must have at least one entry; got []"),
    "a service that is none": (SMALL, 'name = "x"\nservice = [3]', "line 2: service[0]: must be a table; got 3"),
    "a number as time": ('duration = "10m"', "duration = 600", "line 6: service[0].arrivals.duration: must be a duration from 1ms to 9000h, with units (ms, s, m or h); got 600"),
    "a time below 0": ('fixed = "6ms"', 'fixed = "-6ms"', 'line 9: service[0].server.fixed: must be a duration from 0s to 9000h, with units (ms, s, m or h); got "-6ms"'),
    "no time at all": ('duration = "10m"', 'duration = "0s"', 'line 6: service[0].arrivals.duration: must be a duration from 1ms to 9000h, with units (ms, s, m or h); got "0s"'),
    "a rate below 0": ("rps = 100", "rps = -1", "line 7: service[0].arrivals.rps: must be greater than or equal to 0; got -1"),
    "a rate of nan": ("rps = 100", "rps = nan", "line 7: service[0].arrivals.rps: must be a finite number; got NaN"),
    "a text as rate": ("rps = 100", 'rps = "100"', 'line 7: service[0].arrivals.rps: must be a number; got "100"'),
    "B = 0": ("max_batch = 8", "max_batch = 0", "line 11: service[0].server.max_batch: max_batch must be >= 1; got 0"),
    "a batch of a half": ("max_batch = 8", "max_batch = 0.5", "line 11: service[0].server.max_batch: must be a whole number; got 0.5"),
    "requests for nothing": ('fixed = "6ms"\nper_item = "0.5ms"', "", "line 8: service[0].server: a request must take time; got 0"),
    "too wild": ("max_batch = 8", "cv = 11", "line 11: service[0].server.cv: cv must be >= 0 and <= 10; got 11"),
    "an SLO below one request": ('target = "100ms"', 'target = "6ms"', "line 13: service[0].slo.target: vision: the target must be at least the time of one request (0.0065 s); got 0.006 s"),
    "another percentile": ('target = "100ms"', 'target = "100ms"\npercentile = 50', "line 14: service[0].slo.percentile: must be 90, 95 or 99; got 50"),
    "a ceiling of 1": ('target = "100ms"', 'target = "100ms"\nutilization_ceiling = 1', "line 14: service[0].slo.utilization_ceiling: must be less than or equal to 0.95; got 1"),
    "no SLO": ('[service.slo]\ntarget = "100ms"\n', "", "line 2: service[0].slo: is required unless arrivals are a recording"),
    "no server": ('[service.server]\nfixed = "6ms"\nper_item = "0.5ms"\nmax_batch = 8\n', "", "line 2: service[0].server: is required unless"),
    "an impossible claim": ("max_batch = 8", "advertised = { max_batch = 4 }", "line 11: service[0].server.advertised: a request must take time; got 0"),
    "no kind of arrivals": ('generator = "constant"\n', "", "line 4: service[0].arrivals: must name exactly one of trace, recording and generator"),
    "two kinds of arrivals": ('generator = "constant"', 'generator = "constant"\ntrace = "x"', "line 4: service[0].arrivals: must name exactly one of"),
    "an unknown generator": ('"constant"', '"noise"', "the last one of constant, step, ramp, stages, spikes, diurnal, on-off, users; got {"),
    "a step after the end": ('"constant"\nduration = "10m"\nrps = 100', '"step"\nduration = "10m"\nbefore_rps = 1\nafter_rps = 2\nat = "10m"', "line 9: service[0].arrivals.at: at must lie between 0 s and 600 s; got 600"),
    "a stage without rate": ('"constant"\nduration = "10m"\nrps = 100', '"stages"\nstages = [\n{ duration = "1m", rps = 1 },\n{ duration = "1m" },\n]', "line 6: service[0].arrivals.stages[1].rps: is required"),
    "a trace that is none": ('generator = "constant"\nduration = "10m"\nrps = 100', 'trace = "azure"', "line 5: service[0].arrivals.trace: trace must be a .csv or .csv.gz file, or one of azfunc2019_all497_60s, "),
    "a file of nowhere": ('generator = "constant"\nduration = "10m"\nrps = 100', 'trace = "x.csv"', "line 5: service[0].arrivals.trace: trace must not be a file, because the scenario is not one; got 'x.csv'"),
    "a window beyond the trace": ('generator = "constant"\nduration = "10m"\nrps = 100', 'trace = "azure_llm_2023_conv"\nstart = "50m"\nduration = "10m"', "line 6: service[0].arrivals.start: start + duration must lie within the 3502 s of azure_llm_2023_conv; got 3000 + 600 s"),
    "scale and mean": ('generator = "constant"\nduration = "10m"\nrps = 100', 'trace = "azure_llm_2023_conv"\nscale = 1\nmean_rps = 2', "line 4: service[0].arrivals: must have scale or mean_rps, not both; got both"),
    "an unknown routing": ("[service.slo]", '[service.network]\nrouting = "best"\n[service.slo]', "line 13: service[0].network.routing: must be 'random', 'sticky', 'round-robin', 'least-in-flight', 'power-of-two' or 'central'; got \"best\""),
    "no connection": ("[service.slo]", "[service.network]\nconnections = 0\n[service.slo]", "line 13: service[0].network.connections: connections must be >= 1; got 0"),
    "no patience": ("[service.slo]", '[service.clients]\ntimeout = "0s"\n[service.slo]', "line 13: service[0].clients.timeout: timeout_s must be > 0; got 0"),
    "fewer than least": ("[service.slo]", "[service.scaling]\nmin_replicas = 5\nmax_replicas = 4\n[service.slo]", "line 13: service[0].scaling.min_replicas: min_replicas must be <= max_replicas; got 5 and 4"),
    "a rate of nothing": ("[service.slo]", '[service.scaling]\nscale_up = { rate = { period = "1m" } }\n[service.slo]', "line 13: service[0].scaling.scale_up.rate: must have replicas, percent or both; got neither"),
    "two cold starts": ("[service.slo]", '[service.cold_start]\ntotal = "1m"\nphases = [{name = "a", median = "1s"}]\n[service.slo]', "line 12: service[0].cold_start: must have either total or phases; got both"),
    "a spread below 1": ("[service.slo]", '[service.cold_start]\ntotal = "1m"\nspread = 0.5\n[service.slo]', "line 14: service[0].cold_start.spread: pulling: spread must be >= 1; got 0.5"),
    "connections of none": ('[service.slo]', '[service.clients]\nconnection_requests = 5\n[service.slo]', "line 13: service[0].clients.connection_requests: connection_requests needs connections or users; got neither"),
    "users next to a rate": ('[service.slo]', '[service.clients]\nusers = 5\n[service.slo]', "line 4: service[0].arrivals: arrivals of users and users of clients need one another; got only one of them"),
    "a fault of another kind": ('"100ms"\n', '"100ms"\n[[fault]]\nkind = "flood"\nstart = "1s"\n', "line 15: fault[0].kind: must be 'scrape-loss', 'metrics-restart', 'pod-kill', 'node-loss', 'slow-pods', 'costly-requests' or 'slow-starts'; got \"flood\""),
    "a share of nothing": ('"100ms"\n', '"100ms"\n[[fault]]\nkind = "pod-kill"\nstart = "1s"\nshare = 0', "line 17: fault[0].share: a fault's share must lie in (0, 1]; got 0"),
    "a fault after the end": ('"100ms"\n', '"100ms"\n[[fault]]\nkind = "pod-kill"\nstart = "10m"', "line 16: fault[0].start: start must be before the load ends at 600 s; got 600 s"),
    "a fault of no service": ('"100ms"\n', '"100ms"\n[[fault]]\nkind = "pod-kill"\nstart = "1m"\nservice = "x"', "line 17: fault[0].service: service must be one of vision; got x"),
    "two of one name": ('target = "100ms"\n', 'target = "100ms"\n' + SMALL[SMALL.index("[[service]]"):], "line 15: service[1].name: must be unique; got vision again"),
    "a name with a space": ('"vision"', '"my vision"', "line 3: service[0].name: must be a name of letters, digits, -, ., _ and /"),
}  # fmt: skip


@pytest.mark.parametrize(("old", "new", "message"), BAD.values(), ids=BAD.keys())
def test_invalid_scenario_names_line_rule_and_value(old: str, new: str, message: str) -> None:
    assert old in SMALL
    with pytest.raises(ScenarioError) as refused:
        parse_scenario(SMALL.replace(old, new), "bad.toml")
    assert str(refused.value).startswith("bad.toml, line ")
    assert message in str(refused.value)


def test_several_problems_are_listed_by_line() -> None:
    text = SMALL.replace("rps = 100", "rps = -1").replace('"6ms"', "6").replace('"100ms"', '""')
    with pytest.raises(ScenarioError) as refused:
        parse_scenario(text, "bad.toml")
    lines = str(refused.value).splitlines()
    assert [line.split(": ")[0] for line in lines] == [f"bad.toml, line {n}" for n in (7, 9, 13)]


def test_malformed_trace_of_scenario_names_its_own_line(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("t_s,requests\n0,1\n60,many\n")
    file = tmp_path / "s.toml"
    file.write_text(re.sub(r"generator.*\nduration.*\nrps.*", 'trace = "t.csv"', SMALL))
    with pytest.raises(ScenarioError) as refused:
        load_scenario(file)
    expected = "t.csv, line 3: fields must be numbers >= 0; got 'many'"
    assert str(refused.value) == f"{file}, line 5: service[0].arrivals.trace: {expected}"


def test_unreadable_files_are_named(tmp_path: Path) -> None:
    with pytest.raises(ScenarioError, match="a scenario must be a readable file; got: No"):
        load_scenario(tmp_path / "none.toml")
    (tmp_path / "latin.toml").write_bytes(b'name = "x"\n# caf\xe9\n')
    with pytest.raises(ScenarioError, match="line 2: a scenario must be UTF-8 text; got byte 0xe9"):
        load_scenario(tmp_path / "latin.toml")


def scenario_or_error(text: str) -> str:
    try:
        scenario = parse_scenario(text, "any.toml")
    except ScenarioError as error:
        return str(error)
    assert isinstance(scenario, Scenario)
    return ""


@settings(max_examples=150)
@given(data=st.data())
def test_mutated_scenario_parses_or_fails_cleanly(data: st.DataObject) -> None:
    text = data.draw(st.sampled_from([SMALL, FULL]))
    pieces = [*re.findall(r'\w+|"[^"]*"|[\[\]={},\n]', FULL), "0", "-1", "nan", "inf", "1e999"]
    for _ in range(data.draw(st.integers(1, 4))):
        begin = data.draw(st.integers(0, len(text)))
        end = min(len(text), begin + data.draw(st.integers(0, 12)))
        text = text[:begin] + data.draw(st.sampled_from(pieces) | st.text(max_size=4)) + text[end:]
    said = scenario_or_error(text)
    for line in said.splitlines():
        assert re.match(r"any\.toml(, line \d+)?: ", line), said


@settings(max_examples=80)
@given(
    key=st.sampled_from(re.findall(r"^(\w+) = ", FULL, flags=re.MULTILINE)),
    value=st.sampled_from(['""', "[]", "{}", "[[]]", "true", "1979-05-27", "-0.0", "1e308", '"9 h"', "9" * 40]),
)  # fmt: skip
def test_scenario_with_any_value_parses_or_fails_at_its_line(key: str, value: str) -> None:
    line = next(n for n, text in enumerate(FULL.split("\n"), 1) if text.startswith(f"{key} = "))
    lines = FULL.split("\n")
    if lines[line - 1].endswith("["):
        return
    lines[line - 1] = f"{key} = {value}"
    said = scenario_or_error("\n".join(lines))
    assert not said or f"any.toml, line {line}: " in said or key in said, said


@pytest.mark.parametrize(
    "text",
    [
        "x = " + "[" * 5000,
        "x = " + "9" * 5000,
        "",
        "\x00",
        "[service]",
        "service = 1",
        "a.b.c = 1",
        ".".join("a" * 5000) + " = 1",
    ],
    ids=["deep", "long", "empty", "nul", "table", "number", "dotted", "many dots"],
)
def test_hostile_texts_are_rejected_cleanly(text: str) -> None:
    assert scenario_or_error(text).startswith("any.toml, line 1: ")


@pytest.mark.clock
def test_error_of_a_long_statement_takes_no_longer_than_its_lines() -> None:
    """Each line of it was read again for each further one: 20 000 took more than a minute."""
    for line in ("1,", "[1],", "[[1]"):
        begun_s = time.perf_counter()
        scenario_or_error(SMALL + "\nx = [\n" + f"{line}\n" * 20_000 + "]" * 40_000)
        scenario_or_error(SMALL + "\nx = [\n" + "1,\n" * 20_000 + "]\n")
        assert time.perf_counter() - begun_s < 10.0


def test_larger_file_is_refused_before_it_is_read(tmp_path: Path) -> None:
    path = tmp_path / "sparse.toml"
    with path.open("wb") as file:
        file.truncate(10 << 30)
    with pytest.raises(ScenarioError, match="must have at most 8388608 bytes"):
        load_scenario(path)
