"""Runs the load generator against a server and reads CPU and memory around it."""

from __future__ import annotations

import contextlib
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

from serverbench.accounts import machine_cpu_s
from serverbench.generator.arrivals import Segment
from serverbench.generator.exchange import Answers, Kind, Plan
from serverbench.running import Running
from serverbench.windows import Window, window

Values = dict[str, float]

SLO_S = 0.1
TIMEOUT_S = 10.0
IMPATIENT_S = 2.0
"""Timeout where only answers within `SLO_S` count."""
CALM_PATIENCE_S = 20.0


class LoadError(Exception):
    """The load generator itself failed."""


class Loaded(NamedTuple):
    """One run of load."""

    answers: Answers
    window: Window
    server_cpu_s: float
    others_cores: float
    """Cores of the machine that others used: how noisy it was."""
    rss_mb: float
    began_s: float
    """On the monotonic clock; requests are due from then on."""

    @property
    def generator_ms(self) -> float:
        """CPU per request of the generator."""
        return 1000 * self.answers.cpu_s / max(1, len(self.answers.due_s))


def load(
    target: Running,
    kinds: Sequence[Kind],
    *segments: Segment,
    seed: int,
    warm_connections: int = 32,
    timeout_s: float = TIMEOUT_S,
    meanwhile: Callable[[], None] = lambda: None,
) -> Loaded:
    """Send it; `meanwhile` is called once, when it has begun.

    Raises:
        LoadError: the generator ended without a result.
    """
    plan = Plan(
        port=target.port,
        segments=tuple(segments),
        kinds=tuple(kinds),
        seed=seed,
        warm_connections=warm_connections,
        timeout_s=timeout_s,
    )
    with _ready(plan) as process:
        before, machine_s, began_s = target.usage(), machine_cpu_s(), time.monotonic()
        _say(process, "go")
        meanwhile()
        answers = _answers(process)
        after = target.usage()
        others_s = machine_cpu_s() - machine_s - (after.cpu_s - before.cpu_s)
        wall_s = time.monotonic() - began_s
    return Loaded(
        answers=answers,
        window=window(answers, sum(segment.seconds for segment in segments)),
        server_cpu_s=after.cpu_s - before.cpu_s,
        others_cores=max(0.0, others_s - answers.cpu_s) / wall_s,
        rss_mb=after.rss_mb,
        began_s=began_s,
    )


def generate(plan: Plan) -> Answers:
    """Run a plan in a process of its own; return the outcome of each request.

    Raises:
        LoadError: the generator ended without a result.
    """
    with _ready(plan) as process:
        _say(process, "go")
        return _answers(process)


@contextlib.contextmanager
def _ready(plan: Plan) -> Iterator[subprocess.Popen[str]]:
    """Start the generator with its connections warm; it ends with the block."""
    command = [sys.executable, "-m", "serverbench.generator.loader"]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert process.stdin is not None
    assert process.stdout is not None
    try:
        _say(process, plan.model_dump_json())
        if process.stdout.readline() != "ready\n":
            raise LoadError("the load generator could not warm its connections")
        yield process
    except BaseException:
        process.kill()
        raise
    finally:
        process.stdin.close()
        process.wait()
        process.stdout.close()


def _answers(process: subprocess.Popen[str]) -> Answers:
    assert process.stdout is not None
    line = process.stdout.readline()
    if not line:
        raise LoadError(f"the load generator ended with {process.wait()}")
    return Answers.model_validate_json(line)


def await_calm(target: Running) -> None:
    """Wait until probes are answered promptly: the server has finished an earlier load."""
    until_s, prompt = time.monotonic() + CALM_PATIENCE_S, 0
    while prompt < 2 and time.monotonic() < until_s:
        began_s = time.monotonic()
        with contextlib.suppress(OSError):
            target.probe(timeout_s=IMPATIENT_S)
            prompt = prompt + 1 if time.monotonic() - began_s < SLO_S / 2 else 0
        time.sleep(0.02)


def _say(process: subprocess.Popen[str], line: str) -> None:
    assert process.stdin is not None
    process.stdin.write(line + "\n")
    process.stdin.flush()
