"""Runs a cluster's programs, as the first process of a node's namespaces or as a plain parent.

When this process ends, so do all programs: in a pid namespace the kernel ends them with their first
process, and elsewhere each of them has asked to be killed with its parent.
"""

from __future__ import annotations

import os
import signal
import ssl
import subprocess
import sys
import time
import urllib.error
import urllib.request
from pathlib import Path

from cluster.commands import environment
from cluster.isolation import isolate
from cluster.layout import Layout
from cluster.plan import Component, Plan

API_PATIENCE_S = 90.0
API_POLL_S = 0.05
STOP_PATIENCE_S = 2.0


class Supervisor:
    """Starts the programs in two waves, and ends all when one of them ends."""

    def __init__(self, layout: Layout, plan: Plan) -> None:
        self._layout = layout
        self._plan = plan
        self._running: dict[int, tuple[str, subprocess.Popen[bytes]]] = {}

    def run(self) -> int:
        """Run until a program ends or a signal asks to stop; return the exit status."""
        signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
        try:
            if self._plan.isolated:
                isolate(self._layout.root)
            self._start_wave(needs_api=False)
            self._wait_for_api()
            self._layout.api_ready.touch()
            self._start_wave(needs_api=True)
            return self._reap_until_one_ends()
        finally:
            self._stop()

    def _start_wave(self, *, needs_api: bool) -> None:
        for component in self._plan.components:
            if component.needs_api == needs_api:
                self._start(component)

    def _start(self, component: Component) -> None:
        log = (self._layout.logs / f"{component.name}.log").open("wb")
        with log:
            process = subprocess.Popen(
                ["setpriv", "--pdeathsig", "KILL", *component.argv],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                cwd=self._layout.root,
                env=environment(),
                pass_fds=self._inherited(component),
            )
        self._running[process.pid] = (component.name, process)

    def _inherited(self, component: Component) -> tuple[int, ...]:
        listener = self._plan.listener_fd
        return (listener,) if component.takes_listener and listener is not None else ()

    def _wait_for_api(self) -> None:
        authority = self._layout.certificates / "ca.crt"
        context = ssl.create_default_context(cafile=str(authority))
        opener = urllib.request.build_opener(
            urllib.request.ProxyHandler({}), urllib.request.HTTPSHandler(context=context)
        )
        deadline = time.monotonic() + API_PATIENCE_S
        while time.monotonic() < deadline:
            for name, process in self._running.values():
                if process.poll() is not None:
                    raise SystemExit(_ended(name, process.returncode))
            try:
                with opener.open(f"{self._plan.api_url}/readyz", timeout=5):
                    return
            except (OSError, urllib.error.URLError):
                time.sleep(API_POLL_S)
        raise SystemExit(f"the API server was not ready within {API_PATIENCE_S:g} s")

    def _reap_until_one_ends(self) -> int:
        while True:
            # Any child: what pods leave behind falls to the first process of the namespace.
            pid, status = os.waitpid(-1, 0)
            if pid in self._running:
                name, _ = self._running.pop(pid)
                print(_ended(name, os.waitstatus_to_exitcode(status)), file=sys.stderr)
                return 1

    def _stop(self) -> None:
        for _, process in self._running.values():
            process.kill()
        for _, process in self._running.values():
            try:
                process.wait(STOP_PATIENCE_S)
            except subprocess.TimeoutExpired:
                continue


def _ended(name: str, status: int) -> str:
    return f"{name} ended with status {status}"


def main() -> None:
    """`python -m cluster.supervisor STATE_FOLDER`."""
    layout = Layout(Path(sys.argv[1]))
    raise SystemExit(Supervisor(layout, Plan.read(layout.plan)).run())


if __name__ == "__main__":
    main()
