"""pytest plugin: a test that is bound to the clock may run a second time, and that is recorded.

Only tests with `pytest.mark.clock` run again: once, immediately, in the same worker, under the load
of the other workers. Hypothesis properties never do. `--second-runs SUITE` records a run of a suite
in `.ci/flakes.jsonl`; `python -m second_runs` prints that file. A test that needed its second run
in one of the last nine recorded runs gets none in the tenth: it fails.
"""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[1]
FILE = ROOT / ".ci" / "flakes.jsonl"
RUNS = 10
"""Within so many runs of a suite, a test may need one second run."""

Run = dict[str, Any]


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add `--second-runs` and the file that it writes."""
    group = parser.getgroup("second runs")
    group.addoption("--second-runs", metavar="SUITE", default="", help="record under this name")
    group.addoption("--second-runs-file", metavar="FILE", type=Path, default=FILE)


def pytest_configure(config: pytest.Config) -> None:
    """Register the marker, and the recorder in the process that sees all reports."""
    config.addinivalue_line("markers", "clock: bound to the clock; may run twice, see second_runs")
    if not hasattr(config, "workerinput"):
        config.pluginmanager.register(Recorder(config))


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Permit one second run to each test that may have it."""
    if not config.pluginmanager.hasplugin("rerunfailures"):
        return
    option = config.option
    spent = needed(last_runs(option.second_runs_file, option.second_runs, RUNS - 1))
    for item in items:
        if is_bound_to_the_clock(item) and item.nodeid not in spent:
            item.add_marker(pytest.mark.flaky(reruns=1))


def is_bound_to_the_clock(item: pytest.Item) -> bool:
    """Return whether a test carries the marker and is no property of Hypothesis."""
    test = getattr(item, "obj", None)
    return item.get_closest_marker("clock") is not None and not getattr(
        test, "is_hypothesis_test", False
    )


class Recorder:
    """Collects the tests that passed in their second run; records and prints them at the end."""

    def __init__(self, config: pytest.Config) -> None:
        self._suite: str = config.option.second_runs
        self._file: Path = config.option.second_runs_file
        self._first_failures: dict[str, str] = {}
        self._failed: set[str] = set()

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Note first failures that are followed by a second run, and failures of second runs."""
        if str(report.outcome) == "rerun":
            self._first_failures[report.nodeid] = report.longreprtext
        elif report.failed:
            self._failed.add(report.nodeid)

    def pytest_sessionfinish(self) -> None:
        """Append this run to the file."""
        if self._suite:
            record(self._file, self._suite, sorted(self._passed_second()))

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        """Print the first failure of each test that passed in its second run."""
        if passed := self._passed_second():
            terminalreporter.section(f"{len(passed)} passed in a second run; first failures:")
            for test, text in passed.items():
                terminalreporter.line(f"{test}\n{text}\n")

    def _passed_second(self) -> dict[str, str]:
        return {
            test: text for test, text in self._first_failures.items() if test not in self._failed
        }


def record(file: Path, suite: str, tests: list[str]) -> None:
    """Append one run of a suite: when, of which commit, and the tests that needed a second run."""
    file.parent.mkdir(parents=True, exist_ok=True)
    run = {
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        "commit": _commit(),
        "suite": suite,
        "second": tests,
    }
    with file.open("a", encoding="utf-8") as lines:
        lines.write(json.dumps(run) + "\n")


def last_runs(file: Path, suite: str, count: int) -> list[Run]:
    """Return the latest recorded runs of a suite, the oldest first."""
    text = file.read_text(encoding="utf-8") if file.exists() else ""
    return [run for run in map(json.loads, text.splitlines()) if run["suite"] == suite][-count:]


def needed(runs: Iterable[Run]) -> set[str]:
    """Return the tests that needed a second run in these runs."""
    return {test for run in runs for test in run["second"]}


def _commit() -> str:
    git = ["git", "describe", "--always", "--dirty", "--exclude=*"]
    found = subprocess.run(git, cwd=ROOT, capture_output=True, text=True, check=False)
    return found.stdout.strip() or "unknown"


def main() -> None:
    """Print the second runs in the last ten runs of each suite."""
    for suite in ("unit", "scenarios"):
        runs = last_runs(FILE, suite, RUNS)
        total = sum(len(run["second"]) for run in runs)
        print(f"{suite}: {total} second runs in the last {len(runs)} recorded runs")
        for run in runs:
            for test in run["second"]:
                print(f"  {run['date']} {run['commit']} {test}")


if __name__ == "__main__":
    main()
