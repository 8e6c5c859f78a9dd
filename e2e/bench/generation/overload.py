"""A generating server at 1.5 times its capacity, with deadlines for first tokens.

How many answers are in time, how fast the others are refused, and how much of that is Headroom's:
at the same time the same front answers requests for an unknown model (parsed, and refused before
they reach the engine), and a bare server without an engine answers in a process of its own.
"""

from __future__ import annotations

import contextlib
import tempfile
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import orjson

from bench.figures import Figure
from bench.generation.overload_figures import (
    FIRST_TOKEN_S,
    FULL,
    OVERLOAD,
    Stretch,
    counted,
    figures_of,
)
from bench.server.overhead import started as started_bare
from free_ports import free_port
from generation_peers import engines, processes
from generation_peers.benchmark import LETTERS, SMALL
from generation_peers.lengths import Question, questions
from headroom_server.repository.random_llama import write_random_llama
from serverbench.generator.arrivals import Segment
from serverbench.generator.exchange import OK, Kind, Plan, request_bytes
from serverbench.loading import generate

QUESTIONS, SCALE = 64, 4.0
"""Azure's conversations, with a quarter of their lengths: answers take seconds, not minutes."""
ROUNDS, SECONDS, WARM_UP_S = 3, 20.0, 5.0
IN_FLIGHT = 2 * engines.SEATS
PROBES_RPS = 10.0
TIMEOUT_S = 60.0


def measure() -> Sequence[Figure]:
    """Return the figures of this machine."""
    asked = questions(
        QUESTIONS, scale=SCALE, context_tokens=SMALL.context_tokens, vocabulary=LETTERS
    )
    capacities: list[float] = []
    full: list[Stretch] = []
    over: list[Stretch] = []
    with _served() as (port, bare_port):
        _capacity_rps(port, asked, WARM_UP_S)  # what is allocated on first use
        for seed in range(ROUNDS):
            capacities.append(_capacity_rps(port, asked, SECONDS))
            for times, found in ((FULL, full), (OVERLOAD, over)):
                found.append(_stretch((port, bare_port), asked, times * capacities[-1], seed))
    return figures_of(capacities, full, over, SECONDS)


@contextlib.contextmanager
def _served() -> Iterator[tuple[int, int]]:
    """Start Headroom's server, and the bare one without an engine; return their ports."""
    port, bare_port = free_port(), free_port()
    with tempfile.TemporaryDirectory() as name:
        folder, log = Path(name) / "model", Path(name) / "log"
        write_random_llama(folder, SMALL)
        engine = engines.ours(
            engines.Setup(folder=folder, context_tokens=SMALL.context_tokens), port
        )
        with (
            processes.started(engine.command, engine.variables, log) as process,
            started_bare(["-m", "bench.generation.bare", str(bare_port), "1"], bare_port, ""),
        ):
            processes.wait_ready(process, f"http://127.0.0.1:{port}{engine.ready_path}", log)
            yield port, bare_port


def _capacity_rps(port: int, asked: Sequence[Question], seconds: float) -> float:
    """Return the answers per second with all seats taken and as many waiting."""
    plan = Plan(
        port=port,
        segments=(Segment(1.0, seconds),),
        kinds=tuple(_kind(one) for one in asked),
        warm_connections=0,
        timeout_s=TIMEOUT_S,
        in_flight=IN_FLIGHT,
    )
    answers = generate(plan)
    ended_s = [
        due_s + took_s
        for due_s, took_s, status in zip(
            answers.due_s, answers.took_s, answers.statuses, strict=True
        )
        if status == OK and took_s is not None
    ]
    # the first seats are all taken at once: what ends in the first half says little
    return sum(seconds / 2 < end_s <= seconds for end_s in ended_s) / (seconds / 2)


def _stretch(
    ports: tuple[int, int], asked: Sequence[Question], rate_rps: float, seed: int
) -> Stretch:
    port, bare_port = ports
    total_rps = rate_rps + PROBES_RPS
    share = rate_rps / total_rps / len(asked)
    plan = Plan(
        port=port,
        segments=(Segment(total_rps, SECONDS),),
        # the first kind is what warms connections
        kinds=(_unknown(PROBES_RPS / total_rps), *(_kind(one, share) for one in asked)),
        seed=seed,
        timeout_s=TIMEOUT_S,
    )
    bare = Plan(
        port=bare_port,
        segments=(Segment(PROBES_RPS, SECONDS),),
        kinds=(Kind(request="GET / HTTP/1.1\r\nhost: localhost\r\n\r\n"),),
        seed=seed,
        warm_connections=4,
    )
    with ThreadPoolExecutor(1) as pool:
        beside = pool.submit(generate, bare)
        answers = generate(plan)
        return counted(answers, asked, beside.result())


def _kind(question: Question, share: float = 1.0) -> Kind:
    body = {
        "model": "peer",
        "prompt": question.prompt,
        "max_tokens": question.answer_tokens,
        "ignore_eos": True,
        "stream": True,
    }
    headers = [("x-first-token-timeout", f"{FIRST_TOKEN_S}")] if share < 1.0 else []
    request = request_bytes("/v1/completions", orjson.dumps(body), headers=headers)
    return Kind(request=request, expected="[DONE]", share=share)


def _unknown(share: float) -> Kind:
    body = orjson.dumps({"model": "none", "prompt": [1], "max_tokens": 1, "stream": True})
    return Kind(request=request_bytes("/v1/completions", body), share=share)
