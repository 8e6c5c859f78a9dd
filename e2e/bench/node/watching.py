"""Objects of a cluster as they change, each change with the time at which it was seen."""

from __future__ import annotations

import contextlib
import subprocess
import threading
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from cluster import Node
from cluster.commands import environment

SEPARATOR = ";"


@dataclass(frozen=True, slots=True)
class Seen:
    """One change: wall clock, and the requested columns."""

    time_s: float
    columns: tuple[str, ...]


@dataclass(slots=True)
class Watch:
    """The changes seen so far; grows while the watch is open."""

    changes: list[Seen] = field(default_factory=list)

    def first(self, *columns: str) -> Seen | None:
        """Find the first change that begins with these columns."""
        return next((seen for seen in list(self.changes) if _begins(seen, columns)), None)

    def since(self, time_s: float) -> Sequence[Seen]:
        """All changes since then, oldest first."""
        return [seen for seen in list(self.changes) if seen.time_s >= time_s]

    def latest(self, name: str) -> Seen | None:
        """Find what was seen last of the object with this first column."""
        return next((seen for seen in reversed(self.changes) if seen.columns[0] == name), None)


@contextlib.contextmanager
def watching(node: Node, kind: str, namespace: str, *paths: str) -> Iterator[Watch]:
    """Watch a kind with `kubectl get --watch`; each of `paths` is a column in kubectl's JSONPath.

    Objects that exist already are seen at the beginning. A path that is not there gives "".
    """
    columns = SEPARATOR.join(f"{{{path}}}" for path in paths)
    process = subprocess.Popen(
        [
            *("setpriv", "--pdeathsig", "KILL", node.programs.component("kubectl")),
            *("get", kind, "--namespace", namespace, "--watch"),
            *("-o", f'jsonpath={columns}{{"\\n"}}'),
        ],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        env=environment(node.kubectl_environment()),
        text=True,
    )
    watch = Watch()
    reader = threading.Thread(target=_read, args=(process, watch), daemon=True)
    reader.start()
    try:
        yield watch
    finally:
        process.kill()
        process.wait()
        reader.join()
        assert process.stdout is not None
        process.stdout.close()


def _read(process: subprocess.Popen[str], watch: Watch) -> None:
    assert process.stdout is not None
    for line in process.stdout:
        watch.changes.append(Seen(time.time(), tuple(line.rstrip("\n").split(SEPARATOR))))


def _begins(seen: Seen, columns: Sequence[str]) -> bool:
    return seen.columns[: len(columns)] == tuple(columns)
