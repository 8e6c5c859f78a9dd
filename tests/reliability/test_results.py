"""Results of an interrupted measurement are used again, for the same sources only."""

from __future__ import annotations

from pathlib import Path

import pytest

import results
from reliability.telemetry import telemetry
from reliability.telemetry.telemetry_outcome import Outcome
from reliability.telemetry.telemetry_tree import run
from results import Results, digest


def test_results_after_a_kill_are_there_without_the_torn_line(tmp_path: Path) -> None:
    path = tmp_path / "folder" / "rows.jsonl"
    first = Results(path)
    first.put("outages", "a", {"decided_s": 1.5})
    first.put("outages", "a", {"decided_s": 2.5})
    first.put("crashes", "b", {"wrongs": ["x"]})
    with path.open("a") as file:
        file.write('{"part": "crashes", "key": "c", "r')
    again = Results(path)
    again.put("crashes", "d", {"wrongs": []})
    for one in (again, Results(path)):
        assert one.get("outages", "a") == {"decided_s": 2.5}
        assert one.get("crashes", "b") == {"wrongs": ["x"]}
        assert one.get("crashes", "c") is None
        assert one.get("crashes", "d") == {"wrongs": []}


@pytest.mark.parametrize("line", ["", "[1]", '"text"', "7", "\xff"])
def test_line_that_is_no_row_is_skipped(tmp_path: Path, line: str) -> None:
    path = tmp_path / "rows.jsonl"
    path.write_text(f'{{"a": 1}}\n{line}\n{{"a": 2}}\n', encoding="latin-1")
    assert list(results.load(path)) == [{"a": 1}, {"a": 2}]


def test_digest_follows_content_names_and_inputs(tmp_path: Path) -> None:
    source = tmp_path / "one.py"
    source.write_text("1")
    same = digest([source], "full")
    assert digest([source], "full") == same
    assert digest([source], "quick") != same
    source.write_text("2")
    changed = digest([source], "full")
    assert changed != same
    assert digest([source.rename(tmp_path / "two.py")], "full") != changed


def test_finished_sequences_are_not_played_again(tmp_path: Path) -> None:
    stored = Results(tmp_path / "rows.jsonl")
    played = Outcome(sequences=7, faults=run([1]).faults, wrongs=["one"])
    stored.put(telemetry.PART, str(range(3)), played.row())
    assert telemetry.run_side_by_side(3, 1, Results(tmp_path / "rows.jsonl")) == played
