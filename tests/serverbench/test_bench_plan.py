"""Every wanted measurement is planned once, within its time; records survive a kill."""

from __future__ import annotations

from pathlib import Path

import pytest

from serverbench.experiments.scale import FULL
from serverbench.options import parsed
from serverbench.peer_servers import PEER_NAMES
from serverbench.plan import expected_s, keys, visits
from serverbench.records import Case, Key, Record, add, load
from serverbench.servers import BARE, OURS


def test_plan_visits_each_measurement_once() -> None:
    servers = (OURS, BARE, *PEER_NAMES)
    wanted = keys(tuple(Case), servers, FULL)
    visited = [key for visit in visits(wanted, servers) for key in visit.keys]
    assert sorted(visited) == sorted(wanted)
    assert len(set(wanted)) == len(wanted)


@pytest.mark.parametrize(
    ("argv", "minutes"), [([], 40), (["--quick"], 5)], ids=["all of it", "quick"]
)
def test_plan_stays_within_its_time(argv: list[str], minutes: float) -> None:
    asked = parsed(argv)
    wanted = keys(asked.cases, asked.servers, asked.scale)
    starts_s = 6.0 * sum(len(visit.keys) > 1 for visit in visits(wanted, asked.servers))
    load_s = sum(expected_s(key.case, asked.scale) for key in wanted)
    assert (starts_s + load_s) / 60 < minutes


def test_options_select_cases_and_servers() -> None:
    assert Case.SOAK not in parsed([]).cases
    assert parsed(["--soak"]).cases == (Case.SOAK,)
    assert parsed(["--soak", "0.5"]).soak_minutes == 0.5
    assert parsed(["--only", "knee,idle"]).cases == (Case.KNEE, Case.IDLE)
    assert parsed(["--peers", "none"]).servers == (OURS, BARE)
    assert parsed(["--peers", "mosec,triton,mosec"]).peers == ("mosec", "triton")
    for wrong in (["--only", "knees"], ["--peers", "vllm"], ["--soak", "nan"]):
        with pytest.raises(SystemExit, match="2"):
            parsed(wrong)


def test_records_after_a_kill_keep_the_last_of_each_key(tmp_path: Path) -> None:
    path = tmp_path / "deep" / "kept.jsonl"
    key = Key(Case.KNEE, OURS, 1)
    for value in (1.0, None):
        add(path, Record(**key._asdict(), fingerprint="f", values={"highest_rps": value}))
    with path.open("a") as file:
        file.write('{"case": "knee", "serv')
    add(path, Record(**(key._asdict() | {"round": 2}), fingerprint="f", values={}))
    found = load(path)
    assert found[key].values == {"highest_rps": None}
    assert set(found) == {key, key._replace(round=2)}
