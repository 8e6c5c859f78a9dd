"""Second runs of tests that are bound to the clock: conditions and records."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("pytest_rerunfailures")

SUITE = """
import pathlib, pytest
from hypothesis import given, strategies

def _fails_first(name):
    seen = pathlib.Path(__file__).with_name(name)
    first = not seen.exists()
    seen.touch()
    assert not first

@pytest.mark.clock
def test_clock(): _fails_first("clock")

def test_plain(): _fails_first("plain")

@pytest.mark.clock
@given(strategies.none())
def test_property(_): _fails_first("property")
"""


def run(folder: Path, *options: str) -> subprocess.CompletedProcess[str]:
    """Run the suite as `make unit` does, with files of its own."""
    (folder / "test_it.py").write_text(SUITE)
    (folder / "pytest.ini").write_text("[pytest]\n")
    for seen in ("clock", "plain", "property"):
        (folder / seen).unlink(missing_ok=True)
    words = [sys.executable, "-m", "pytest", "-p", "second_runs", "-p", "no:cacheprovider"]
    record = ["--second-runs", "unit", "--second-runs-file", str(folder / "runs.jsonl")]
    return subprocess.run(
        [*words, *record, *options, str(folder)],
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.parametrize("options", [(), ("--numprocesses", "2")], ids=["alone", "workers"])
def test_second_run_is_for_marked_tests_only_and_recorded(
    tmp_path: Path, options: tuple[str, ...]
) -> None:
    first = run(tmp_path, *options)
    assert "test_it.py::test_clock" in first.stdout.split("passed in a second run")[1]
    assert "FAILED test_it.py::test_plain" in first.stdout
    assert "FAILED test_it.py::test_clock" not in first.stdout
    (kept,) = map(json.loads, (tmp_path / "runs.jsonl").read_text().splitlines())
    assert kept["second"] == ["test_it.py::test_clock"]
    assert kept["suite"] == "unit"


def test_property_that_fails_is_not_run_again(tmp_path: Path) -> None:
    assert (
        "test_it.py::test_property"
        not in run(tmp_path).stdout.split("second run")[1].split("short test summary")[0]
    )


def test_second_need_within_ten_runs_fails(tmp_path: Path) -> None:
    run(tmp_path)
    again = run(tmp_path)
    assert "FAILED test_it.py::test_clock" in again.stdout
    assert json.loads((tmp_path / "runs.jsonl").read_text().splitlines()[-1])["second"] == []


def test_need_older_than_ten_runs_is_forgotten(tmp_path: Path) -> None:
    run(tmp_path)
    with (tmp_path / "runs.jsonl").open("a") as file:
        for _ in range(9):
            file.write(json.dumps({"suite": "unit", "second": []}) + "\n")
    assert "FAILED test_it.py::test_clock" not in run(tmp_path).stdout
