"""Runs the same requests on all engines, one after the other, several times."""

from __future__ import annotations

import contextlib
import json
import statistics
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from cluster.progress import Progress
from generation_peers import processes
from generation_peers.engines import Engine
from generation_peers.lengths import Question
from generation_peers.load import Answer, Round, WrongAnswerError, answers, send
from generation_peers.processes import NotStartedError

WARM_UP = 4
"""Requests before the first round: what a server compiles or allocates on first use."""


class Running:
    """An engine that takes rounds."""

    def __init__(self, engine: Engine, process: subprocess.Popen[str], url: str, log: Path) -> None:
        self.engine = engine
        self.pid = process.pid
        self._process = process
        self._url = url
        self._log = log

    def round(self, questions: Sequence[Question]) -> Round:
        """Answer all requests.

        Raises:
            WrongAnswerError: it did something else.
        """
        if not self.engine.http:
            return self._round_by_pipe(questions)
        before_s = processes.cpu_s(self.pid)
        found = send(self._url, "peer", questions)
        return found._replace(cpu_s=processes.cpu_s(self.pid) - before_s)

    def paced(self, questions: Sequence[Question], arrivals_s: Sequence[float]) -> Sequence[Answer]:
        """Answer requests that come at their times; a server of HTTP only.

        Raises:
            WrongAnswerError: it did something else.
        """
        return answers(self._url, "peer", questions, arrivals_s)[0]

    def _round_by_pipe(self, questions: Sequence[Question]) -> Round:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps(questions) + "\n")
        self._process.stdin.flush()
        line = self._process.stdout.readline()
        if not line:
            raise WrongAnswerError(processes.last_lines(self._log))
        said = json.loads(line)
        wanted = sum(one.answer_tokens for one in questions)
        if said["tokens"] != wanted:
            raise WrongAnswerError(f"{wanted} tokens asked for; got {said['tokens']}")
        return Round(said["tokens"], said["wall_s"], said["cpu_s"], said["first_token_s"])


@contextlib.contextmanager
def running(engine: Engine, port: int, logs: Path) -> Iterator[Running]:
    """Start an engine; it ends with the block.

    Raises:
        NotStartedError: it did not become ready.
    """
    log = logs / f"{engine.name}.log"
    pipes = subprocess.DEVNULL if engine.http else subprocess.PIPE
    url = f"http://127.0.0.1:{port}"
    with processes.started(engine.command, engine.variables, log, pipes) as process:
        if engine.http:
            processes.wait_ready(process, url + engine.ready_path, log)
        elif process.stdout is None or process.stdout.readline() != "ready\n":
            raise NotStartedError(processes.last_lines(log))
        yield Running(engine, process, url, log)


def rounds(
    engines: Mapping[int, Engine],
    questions: Sequence[Question],
    *,
    runs: int,
    logs: Path,
    progress: Progress,
) -> Mapping[str, Sequence[Round]]:
    """Return each engine's rounds; `engines` by the port of each.

    All are up at the same time and idle but one: what disturbs one disturbs the next.

    Raises:
        NotStartedError: an engine did not become ready.
        WrongAnswerError: an engine did not answer as asked.
    """
    found: dict[str, list[Round]] = {engine.name: [] for engine in engines.values()}
    with contextlib.ExitStack() as stack:
        up = []
        for port, engine in engines.items():
            with progress.step(f"Starting {engine.title}"):
                up.append(stack.enter_context(running(engine, port, logs)))
                up[-1].round(questions[:WARM_UP])
        for number in range(runs):
            for one in up:
                with progress.step(f"Run {number + 1} of {runs}: {one.engine.title}"):
                    found[one.engine.name].append(one.round(questions))
    return found


def median(rounds: Sequence[Round]) -> Round:
    """Return the median of each quantity."""
    return Round(
        rounds[0].tokens,
        statistics.median(one.wall_s for one in rounds),
        statistics.median(one.cpu_s for one in rounds),
        statistics.median(one.first_token_s for one in rounds),
    )
