"""The clients of a step of load and their answers: the generator inside the node's network."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import chain, repeat
from pathlib import Path

from cluster import ClusterError, Node
from load.messages import Started, Summary, read_all
from load.running import GENERATOR, Load, running

STARTS_WITHIN_S = 20.0
TARGET_S = 0.25


@dataclass(frozen=True, kw_only=True)
class Step:
    """A rate that rises at once, and falls again."""

    low_rps: float = 40.0
    high_rps: float = 240.0
    before_s: int = 100
    high_s: int = 100
    after_s: int = 100

    @property
    def duration_s(self) -> int:
        """Seconds of the whole step."""
        return self.before_s + self.high_s + self.after_s

    def trace(self) -> str:
        """Return a rate for each second, as the generator reads it."""
        parts = (
            (self.low_rps, self.before_s),
            (self.high_rps, self.high_s),
            (self.low_rps, self.after_s),
        )
        rates = chain.from_iterable(repeat(rate, seconds) for rate, seconds in parts)
        rows = (f"{second},{rate:g}" for second, rate in enumerate(rates))
        return "\n".join(["t_s,requests", *rows, ""])


@dataclass(frozen=True, kw_only=True)
class Clients:
    """Clients and their connections; they wait for every answer."""

    connections: int | None = 64
    connection_requests: int = 0

    @classmethod
    def of(cls, text: str) -> Clients:
        """Read `N` or `N/K`: connections (0: without bound), and requests for each (0: kept).

        Raises:
            ValueError: it is neither.
        """
        connections, _, requests = text.partition("/")
        return cls(
            connections=int(connections) or None,
            connection_requests=int(requests or 0),
        )

    def words(self) -> list[str]:
        """Return the generator's arguments."""
        words = ["--connection-requests", str(self.connection_requests)]
        if self.connections is not None:
            words += ["--connections", str(self.connections)]
        return words

    def __str__(self) -> str:
        """Name them in a table."""
        kept = {0: "kept", 1: "a new one per request"}.get(
            self.connection_requests, f"reopened after {self.connection_requests}"
        )
        many = "connections without bound" if self.connections is None else f"{self.connections}"
        return f"{many}, {kept}"


@dataclass(frozen=True)
class Sending:
    """Clients that have begun."""

    load: Load
    began_s: float
    """Wall clock at the first second."""

    def finish(self) -> Summary:
        """Wait for the last answer."""
        return self.load.finish()


@contextlib.contextmanager
def sending(
    node: Node,
    url: str,
    model: str,
    step: Step,
    clients: Clients,
    folder: Path,
    *,
    seed: int = 1,
    target_s: float = TARGET_S,
) -> Iterator[Sending]:
    """Send the step's requests from inside the node's network, as a pod does, until its end."""
    trace, said = folder / "trace.csv", folder / "said.jsonl"
    trace.write_text(step.trace())
    words = [
        *("--url", url, "--model", model, "--trace", str(trace), "--seed", str(seed)),
        *("--duration", str(step.duration_s), "--target", f"{target_s:g}"),
        # Every request ends in an answer or an error: none is held back, none given up early.
        *("--max-in-flight", "100000", "--timeout", "60"),
        *clients.words(),
    ]
    network = (*node.enter_command()[:2], "--net")
    program = ("setpriv", "--pdeathsig", "KILL", *network, *GENERATOR)
    with running(words, step.duration_s, said, program) as load:
        yield Sending(load, _beginning(load, said))


def _beginning(load: Load, said: Path) -> float:
    deadline_s = time.monotonic() + STARTS_WITHIN_S
    while time.monotonic() < deadline_s:
        started = [one for one in read_all(said.read_text()) if isinstance(one, Started)]
        if started:
            return started[0].unix_s
        if load.has_ended():
            break
        time.sleep(0.1)
    raise ClusterError(f"the load did not start; it said: {said.read_text()[-500:]!r}")
