"""Open-loop load on a service, with a rate that steps at known times."""

from __future__ import annotations

import contextlib
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, repeat
from pathlib import Path

from cluster import ClusterError
from load.messages import Started, read
from scenarios.world import Service


@dataclass(frozen=True, slots=True)
class Phase:
    """A rate in requests per second, for some seconds."""

    rate_rps: float
    seconds: int


@dataclass(frozen=True, slots=True)
class Replay:
    """A generator that has begun."""

    began_s: float
    """Wall clock at the first phase's start."""


@contextlib.contextmanager
def replaying(service: Service, phases: Sequence[Phase], *, seed: int) -> Iterator[Replay]:
    """Send the phases one after the other through the Service; ends with the block."""
    rates = list(chain.from_iterable(repeat(each.rate_rps, each.seconds) for each in phases))
    rows = "\n".join(f"{second},{rate:g}" for second, rate in enumerate(rates))
    with (
        tempfile.TemporaryDirectory(prefix="headroom-bench-") as folder,
        service.cluster.forward(f"service/{service.name}", 80, service.namespace) as endpoint,
    ):
        trace = Path(folder) / "trace.csv"
        trace.write_text(f"t_s,requests\n{rows}\n")
        process = subprocess.Popen(
            [
                *("setpriv", "--pdeathsig", "KILL", sys.executable, "-m", "load"),
                *("--url", endpoint.url, "--model", service.name, "--trace", str(trace)),
                *("--duration", str(len(rates)), "--target", "1.5", "--seed", str(seed)),
            ],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            text=True,
        )
        try:
            yield Replay(_beginning(process, service.name))
        finally:
            process.kill()
            process.communicate()


def _beginning(process: subprocess.Popen[str], name: str) -> float:
    """Read the first line, which says when the first request is due."""
    assert process.stdout is not None
    line = process.stdout.readline()
    message = read(line) if line else None
    if not isinstance(message, Started):
        raise ClusterError(f"the load on {name} did not start; its output: {line!r}")
    return message.unix_s
