"""Outlives the owner of a cluster just long enough to clean up.

One keeper per cluster, on the host. It starts the supervisor (for a node: as the first process of
new namespaces) and waits for the first of: the owner closes its end of the pipe or dies, SIGTERM,
the supervisor ends. Then it ends the supervisor, removes the cgroups and the folder, and keeps
the logs if the end was no orderly one. It holds the cluster's lock meanwhile.
"""

from __future__ import annotations

import contextlib
import os
import select
import shutil
import signal
import subprocess
import sys
from pathlib import Path
from typing import IO

from cluster import cgroups, ownership
from cluster.layout import Layout
from cluster.plan import Plan

ORDERLY = b"end\n"
"""The owner's last message where nothing failed; anything else keeps the logs."""
KEPT_LOG_FOLDERS = 10
STOP_PATIENCE_S = 5.0


def keep(layout: Layout, plan: Plan, lock: IO[str]) -> int:
    """Run the cluster to its end and clean up; return 0 where the end was orderly."""
    ownership.sign(lock)
    stop_requests, stop_writer = os.pipe()
    os.set_blocking(stop_writer, False)
    signal.set_wakeup_fd(stop_writer, warn_on_full_buffer=False)
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, lambda *_: None)
    if plan.isolated:
        cgroups.create(layout.cgroup)
    supervisor = _start_supervisor(layout, plan)
    try:
        if plan.isolated:
            _publish_init_pid(layout, supervisor.pid)
        orderly = _wait_for_the_end(supervisor, stop_requests, plan)
    finally:
        _stop(supervisor, layout)
    if not orderly:
        keep_logs(layout, Path(plan.keep_logs_in))
    ownership.clear(layout)
    return 0 if orderly else 1


def keep_logs(layout: Layout, target: Path) -> None:
    """Move the logs to where they stay, and forget the oldest of those kept there."""
    target.parent.mkdir(parents=True, exist_ok=True)
    shutil.rmtree(target, ignore_errors=True)
    shutil.move(layout.logs, target)
    kept = sorted(target.parent.iterdir(), key=lambda path: path.stat().st_mtime)
    for old in kept[:-KEPT_LOG_FOLDERS]:
        shutil.rmtree(old, ignore_errors=True)


def _start_supervisor(layout: Layout, plan: Plan) -> subprocess.Popen[bytes]:
    argv = ["setpriv", "--pdeathsig", "KILL"]
    if plan.isolated:
        argv += ["unshare", "--mount", "--net", "--pid", "--fork", "--kill-child", "--mount-proc"]
        argv += ["--propagation", "private"]
    argv += [sys.executable, "-m", "cluster.supervisor", str(layout.root)]
    with (layout.logs / "supervisor.log").open("wb") as log:
        return subprocess.Popen(
            argv,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=subprocess.STDOUT,
            pass_fds=(plan.listener_fd,) if plan.listener_fd is not None else (),
        )


def _publish_init_pid(layout: Layout, unshare_pid: int) -> None:
    """Write the host's process id of the child of `unshare`, which is pid 1 inside."""
    children = Path(f"/proc/{unshare_pid}/task/{unshare_pid}/children")
    for _ in range(500):
        try:
            found = children.read_text().split()
        except OSError:
            return
        if found:
            partial = layout.init_pid.with_suffix(".partial")
            partial.write_text(found[0])
            partial.replace(layout.init_pid)
            return
        select.select([], [], [], 0.01)


def _wait_for_the_end(supervisor: subprocess.Popen[bytes], stop_requests: int, plan: Plan) -> bool:
    """Block until it is over; whether it was asked for."""
    ended = os.pidfd_open(supervisor.pid)
    owner = sys.stdin.fileno()
    watched = [ended, stop_requests] if plan.persistent else [ended, stop_requests, owner]
    ready, _, _ = select.select(watched, [], [])
    if ended in ready:
        return False
    if stop_requests in ready:
        return True
    return os.read(owner, len(ORDERLY)) == ORDERLY


def _stop(supervisor: subprocess.Popen[bytes], layout: Layout) -> None:
    if layout.init_pid.exists():
        # `unshare` ignores SIGTERM; the kernel ends all of a pid namespace with its first process.
        with contextlib.suppress(ProcessLookupError):
            os.kill(int(layout.init_pid.read_text()), signal.SIGKILL)
    else:
        supervisor.terminate()
    try:
        supervisor.wait(STOP_PATIENCE_S)
    except subprocess.TimeoutExpired:
        supervisor.kill()
        supervisor.wait()


def main() -> None:
    """`python -m cluster.keeper STATE_FOLDER LOCK_FD`, with the owner's pipe as standard input."""
    layout = Layout(Path(sys.argv[1]))
    with os.fdopen(int(sys.argv[2]), "a+") as lock:
        raise SystemExit(keep(layout, Plan.read(layout.plan), lock))


if __name__ == "__main__":
    main()
