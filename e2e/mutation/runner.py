"""Runs tests on request, each time in a child that has everything but the project imported.

This script must not import the project: a planted bug would not reach modules imported before. One
request per line on standard input, one answer per line on standard output.
"""

from __future__ import annotations

import importlib
import json
import os
import resource
import select
import signal
import sys
import time
import traceback
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

PLUGINS = ("pytest_asyncio.plugin", "pytest_timeout", "_hypothesis_pytestplugin")
OPTIONS = (
    *("-x", "-q", "-p", "no:cacheprovider", "--timeout", "0"),
    *("-W", "ignore::pytest.PytestAssertRewriteWarning"),  # of plugins that are imported already
)
DURATIONS, OUTPUT = "durations.json", "output.txt"
OUT_OF_TIME = -1
LEAST_S, SLOWER = 10.0, 10.0
"""CPU seconds that a test may take, and the factor over its time without a bug."""


class Order:
    """Runs the shortest tests first, by their times without a bug, and records the times.

    Most bugs are noticed by many tests; slow ones run only if the fast ones passed.
    """

    def __init__(self, known: dict[str, float]) -> None:
        self.took_s = dict(known)

    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        """Sort the tests; unknown ones stay at the front."""
        items.sort(key=lambda one: self.took_s.get(one.nodeid, 0.0))

    def pytest_runtest_setup(self, item: pytest.Item) -> None:
        """End the child if a test takes far longer than before: a bug may cause an endless loop."""
        most_s = LEAST_S + SLOWER * self.took_s[item.nodeid] if item.nodeid in self.took_s else 0.0
        signal.setitimer(signal.ITIMER_PROF, most_s)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Record one phase of a test."""
        self.took_s[report.nodeid] = self.took_s.get(report.nodeid, 0.0) + report.duration


def serve(imported: Sequence[str]) -> None:
    """Import the named modules, then answer requests until the input ends."""
    for name in (*PLUGINS, *imported):
        importlib.import_module(name)
    os.environ["PYTEST_DISABLE_PLUGIN_AUTOLOAD"] = "1"
    _settle_hypothesis()
    for line in sys.stdin:
        asked = json.loads(line)
        begun_s = time.monotonic()
        code, cpu_s = _in_a_child(asked)
        answer = {"code": code, "cpu_s": cpu_s, "wall_s": time.monotonic() - begun_s}
        sys.stdout.write(json.dumps(answer) + "\n")
        sys.stdout.flush()


def _settle_hypothesis() -> None:
    """No deadlines, because a crowded machine is no bug; the same examples for the same bug."""
    hypothesis: Any = importlib.import_module("hypothesis")
    slow = [hypothesis.HealthCheck.too_slow]
    hypothesis.settings.register_profile(
        "mutation", derandomize=True, deadline=None, database=None, suppress_health_check=slow
    )
    hypothesis.settings.load_profile("mutation")


def _in_a_child(asked: dict[str, Any]) -> tuple[int, float]:
    """Return pytest's exit status, or OUT_OF_TIME, and the processor's time."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    child = os.fork()
    if child == 0:
        _run(asked["tests"], asked["learn"], asked["most_cpu_s"])
    ended = os.pidfd_open(child)
    try:
        in_time, _, _ = select.select([ended], [], [], asked["most_wall_s"])
        if not in_time:
            os.kill(child, signal.SIGKILL)
        _, status = os.waitpid(child, 0)
    finally:
        os.close(ended)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu_s = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return (OUT_OF_TIME if os.WIFSIGNALED(status) else os.WEXITSTATUS(status)), cpu_s


def _run(tests: Sequence[str], learn: bool, most_cpu_s: int) -> None:
    """Run the tests in the child, and exit with pytest's status in every case."""
    code = 3
    try:
        resource.setrlimit(resource.RLIMIT_CPU, (most_cpu_s, most_cpu_s))
        output = os.open(OUTPUT, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
        os.dup2(output, 1)
        os.dup2(output, 2)
        durations = Path(DURATIONS)
        known = json.loads(durations.read_text()) if durations.exists() else {}
        order = Order({} if learn else known)
        loaded = [part for name in PLUGINS for part in ("-p", name)]
        code = int(pytest.main([*OPTIONS, *loaded, *tests], plugins=[order]))
        if learn:
            durations.write_text(json.dumps(known | order.took_s))
    except BaseException:  # noqa: BLE001  (a child must not continue as its parent)
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


if __name__ == "__main__":
    serve(sys.argv[1:])
