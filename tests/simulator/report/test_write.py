"""A report is written whole or not at all."""

from __future__ import annotations

from pathlib import Path

import pytest

from headroom.simulator.report.write import write_atomically


def test_atomic_write_replaces_the_old_text(tmp_path: Path) -> None:
    path = tmp_path / "made" / "report.json"
    write_atomically(path, "old")
    write_atomically(path, "new é")
    assert path.read_text(encoding="utf-8") == "new é"
    assert list(path.parent.iterdir()) == [path]


def test_interrupted_write_leaves_only_the_old_file(tmp_path: Path) -> None:
    path = tmp_path / "report.json"
    write_atomically(path, "old")
    with pytest.raises(UnicodeEncodeError):  # fails when half of the text is on its way
        write_atomically(path, "x" * 1_000_000 + "\ud800")
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]


def test_write_over_a_folder_fails_and_leaves_nothing(tmp_path: Path) -> None:
    (tmp_path / "report.json").mkdir()
    with pytest.raises(OSError, match=r"report\.json"):
        write_atomically(tmp_path / "report.json", "new")
    assert [each.name for each in tmp_path.iterdir()] == ["report.json"]
