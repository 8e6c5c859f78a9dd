"""What is kept of an interrupted measurement."""

from __future__ import annotations

from pathlib import Path

from reliability import telemetry
from reliability.kept import Kept, digest
from reliability.telemetry import Outcome, run


def test_rows_are_there_again_and_half_a_line_is_none(tmp_path: Path) -> None:
    path = tmp_path / "folder" / "rows.jsonl"
    first = Kept(path)
    first.put("outages", "a", {"decided_s": 1.5})
    first.put("outages", "a", {"decided_s": 2.5})
    first.put("crashes", "b", {"wrongs": ["x"]})
    with path.open("a") as file:
        file.write('{"part": "crashes", "key": "c", "r')
    again = Kept(path)
    assert again.get("outages", "a") == {"decided_s": 2.5}
    assert again.get("crashes", "b") == {"wrongs": ["x"]}
    assert again.get("crashes", "c") is None


def test_sequences_that_are_kept_are_not_played_again(tmp_path: Path) -> None:
    kept = Kept(tmp_path / "rows.jsonl")
    played = Outcome(sequences=7, faults=run([1]).faults, wrongs=["one"])
    kept.put(telemetry.PART, str(range(3)), played.row())
    assert telemetry.run_side_by_side(3, 1, Kept(tmp_path / "rows.jsonl")) == played


def test_the_sources_have_one_name_as_long_as_they_stand() -> None:
    assert digest() == digest()
    assert len(digest()) == 12
