"""Text generation by Headroom's executor: continuous against static batches, and prompt lookup.

The model is a Llama of random weights. Seconds are the process's CPU seconds on one thread, and
the wall clock is shown too: other programs on the machine change the first little.
"""

from __future__ import annotations

import random
import statistics
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from bench.figures import Figure, at_least, shown
from headroom_server.generation.scheduling.options import SchedulingOptions
from headroom_server.generation.scheduling.scheduler import Scheduler
from headroom_server.generation.values import Chunk, GenerationRequest, Iteration, Sampling

if TYPE_CHECKING:
    from headroom_server.torch_generation.executor import TorchExecutor

RUNS = 3
REQUESTS = 48
SEATS = 16
PROMPT, ANSWER = (1020, 0.5), (129, 1.0)
"""Median and sigma of log-normal lengths near Azure's conversations of 2023: means 1155 and 213."""
SCALE = 8
"""Lengths are divided by this: a run takes seconds instead of minutes."""
REPETITIVE_TOKENS = 256
LEAST_TIMES_STATIC = 2.0
LEAST_TIMES_PLAIN = 1.5


class Run(NamedTuple):
    """Tokens generated in a run, and what it took."""

    tokens: tuple[tuple[int, ...], ...]
    cpu_s: float
    wall_s: float

    @property
    def rate(self) -> float:
        """Tokens per CPU second."""
        return sum(map(len, self.tokens)) / self.cpu_s


def measure() -> Sequence[Figure]:
    """Return the figures of one thread on this machine."""
    import torch  # noqa: PLC0415 - the other parts of the bench need no torch

    from bench.generation.model import executor_of, make_model  # noqa: PLC0415

    torch.set_num_threads(1)  # two that share cores with others wait for each other
    with tempfile.TemporaryDirectory() as folder:
        weights = make_model(Path(folder))
        executor = executor_of(Path(folder), SEATS)
        load = requests_of(random.Random(1))
        repetitive = [_request(0, tuple(range(1, 17)) * 8, REPETITIVE_TOKENS)]
        runs: dict[str, list[Run]] = {"static": [], "continuous": [], "plain": [], "lookup": []}
        for _ in range(RUNS):  # side by side: what disturbs one disturbs the others
            runs["static"].append(_timed(lambda: run_static(executor, load)))
            runs["continuous"].append(_timed(lambda: run_scheduled(executor, load)))
            runs["plain"].append(_timed(lambda: run_scheduled(executor, repetitive)))
            runs["lookup"].append(_timed(lambda: run_scheduled(executor, repetitive, drafts=8)))
    rates = {name: statistics.median(run.rate for run in own) for name, own in runs.items()}
    walls = {name: statistics.median(run.wall_s for run in own) for name, own in runs.items()}
    same = all(run.tokens == runs["plain"][0].tokens for run in runs["plain"] + runs["lookup"])
    return [
        shown("model", f"Llama, {weights / 1e6:.1f} M random weights, float32, one thread"),
        *(
            shown(
                f"{name}: tokens per CPU second; wall seconds", f"{rates[name]:.0f}; {wall_s:.1f}"
            )
            for name, wall_s in walls.items()
        ),
        at_least(
            "tokens/s at saturation, continuous against static batches",
            rates["continuous"] / rates["static"],
            LEAST_TIMES_STATIC,
            "x",
            2,
        ),
        at_least(
            "tokens/s of repetitive text at batch 1, prompt lookup against none",
            rates["lookup"] / rates["plain"],
            LEAST_TIMES_PLAIN,
            "x",
            2,
        ),
        at_least("prompt lookup: the same tokens", float(same), 1.0, "", 0),
    ]


def requests_of(chance: random.Random) -> list[GenerationRequest]:
    """Return requests of recorded lengths."""

    def length(median: float, sigma: float) -> int:
        return max(1, int(median / SCALE * chance.lognormvariate(0.0, sigma)))

    return [
        _request(
            key,
            tuple(chance.randrange(1, 1000) for _ in range(min(length(*PROMPT), 600))),
            min(length(*ANSWER), 300),
        )
        for key in range(REQUESTS)
    ]


def _request(key: int, prompt: tuple[int, ...], count: int) -> GenerationRequest:
    greedy = Sampling(temperature=0.0)
    return GenerationRequest(key=key, prompt=prompt, max_tokens=count, sampling=greedy)


def _timed(run: Callable[[], Sequence[Sequence[int]]]) -> Run:
    cpu_s, wall_s = time.process_time(), time.perf_counter()
    tokens = tuple(map(tuple, run()))
    return Run(tokens, time.process_time() - cpu_s, time.perf_counter() - wall_s)


def run_scheduled(
    executor: TorchExecutor, requests: Sequence[GenerationRequest], drafts: int = 0
) -> Sequence[Sequence[int]]:
    """Run all requests with the scheduler, which adds some as others end."""
    options = SchedulingOptions(prefix_cache=False, max_drafts=drafts)
    scheduler = Scheduler(executor.limits, options)
    answers: dict[int, list[int]] = {request.key: [] for request in requests}
    for request in requests:
        scheduler.add(request, time.monotonic())
    while (iteration := scheduler.next_iteration(began_s := time.monotonic())) is not None:
        result = executor.execute(iteration)
        for delivery in scheduler.complete(iteration, result, began_s, time.monotonic()):
            answers[delivery.key] += [sampled.token for sampled in delivery.tokens]
    return list(answers.values())


class Member(NamedTuple):
    """A sequence of a static batch."""

    request: GenerationRequest
    tokens: list[int]
    blocks: range


def run_static(
    executor: TorchExecutor, requests: Sequence[GenerationRequest]
) -> Sequence[Sequence[int]]:
    """Run batches of `SEATS`, each until its longest answer ends, as `generate` of a batch does."""
    answers: list[Sequence[int]] = []
    size = executor.limits.context_tokens // executor.limits.block_tokens
    for first in range(0, len(requests), SEATS):
        batch = [
            Member(request, list(request.prompt), range(seat * size, (seat + 1) * size))
            for seat, request in enumerate(requests[first : first + SEATS])
        ]
        for step in range(max(member.request.max_tokens for member in batch)):
            chunks = tuple(
                Chunk(one, start, tuple(one.tokens[start:]), one.blocks, True)
                for one in batch
                for start in [len(one.tokens) - 1 if step else 0]
            )
            result = executor.execute(Iteration(chunks))
            for one, sampled in zip(batch, result.sampled, strict=True):
                one.tokens.append(sampled[0].token)
        answers += [
            one.tokens[len(one.request.prompt) :][: one.request.max_tokens] for one in batch
        ]
    return answers
