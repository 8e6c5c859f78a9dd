"""Real models on the GPU, or tiny ones on the CPU: batch cost, and the server next to a bare loop.

The sweep is the engine's own warm-up; a line is fitted to it as the server fits it. Only on a GPU
are the figures promises.
"""

from __future__ import annotations

import json
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from functools import reduce
from typing import TYPE_CHECKING, NamedTuple

from bench.figures import Figure, at_least, at_most, shown
from headroom_server.scheduling.batch_cost_fit import FitSums

if TYPE_CHECKING:
    from bench.gpu.models import BenchModel

SHARE_OF_BARE_PERCENT = 95.0
IDLE_PERCENT = 5.0
START_TIMEOUT_S = 600
TITLES = {"resnet": "ResNet-50 class", "bert": "BERT-base class"}


class Line(NamedTuple):
    """t(b) = fixed + per_item * b, and the largest miss of the fit, as a share."""

    fixed_s: float
    per_item_s: float
    residual: float


def fitted(timings: Sequence[tuple[int, float]]) -> Line:
    """Fit a line to (items, seconds)."""
    fixed_s, per_item_s = reduce(lambda sums, one: sums.add(*one), timings, FitSums()).line()
    misses = [abs(seconds - fixed_s - per_item_s * items) / seconds for items, seconds in timings]
    return Line(fixed_s, per_item_s, max(misses))


def measure() -> Sequence[Figure]:
    """Both models, each swept, saturated and started; small ones where there is no GPU."""
    import torch  # noqa: PLC0415 - the other parts of the bench need no torch

    from bench.gpu import generation  # noqa: PLC0415
    from bench.gpu.models import models  # noqa: PLC0415

    full = torch.cuda.is_available()
    device = torch.cuda.get_device_name() if full else "no GPU found: tiny models on the CPU"
    if not full:
        torch.set_num_threads(1)  # two that share cores with others wait for each other
    figures = [shown("device", device), shown("torch", torch.__version__)]
    for model in models(full=full):
        figures += _sweep(model, 1.0 if full else 0.5)
        figures += _compared_with_bare(model, 10.0 if full else 1.0, full=full)
        if full or model.name == "bert":
            figures += _starts(model, full=full)
    figures += generation.measure(full=full)
    return figures


def _sweep(model: BenchModel, seconds: float) -> Iterator[Figure]:
    from bench.gpu.device import engine_of  # noqa: PLC0415
    from headroom_server.device.warming import cold_round, warm_rounds  # noqa: PLC0415

    engine = engine_of(model)
    signature = engine.load()
    wanted = [(size, 0) for size in model.size.batches]
    clock = time.perf_counter
    began_s = clock()
    warm = cold_round(engine, signature, wanted, clock=clock, checkpoint=lambda: None)
    while clock() - began_s < seconds or not warm[0].later:
        per_round = sum(model.size.batches)
        warm = warm_rounds(
            engine, signature, warm, requests=10 * per_round, clock=clock, checkpoint=lambda: None
        )
    timings = [
        (shape.items, statistics.median(one.execute_s for one in shape.later)) for shape in warm
    ]
    line, title = fitted(timings), TITLES[model.name]
    yield shown(
        f"{title}: execution by batch size",
        ", ".join(f"{items}: {seconds * 1000:.2f} ms" for items, seconds in timings),
    )
    yield shown(
        f"{title}: fitted",
        f"t0 {line.fixed_s * 1000:.2f} ms, a {line.per_item_s * 1000:.3f} ms, off by at most "
        f"{100 * line.residual:.0f} %",
    )
    stages = warm[-1].later
    host_s = statistics.median(one.total_s - one.execute_s for one in stages)
    yield shown(f"{title}: host work of the largest batch", f"{host_s * 1000:.2f} ms")


def _compared_with_bare(model: BenchModel, seconds: float, *, full: bool) -> Iterator[Figure]:
    from bench.gpu.device import bare_items_per_s, saturated  # noqa: PLC0415

    size, title = model.size.batches[-1], TITLES[model.name]
    # in turn, so that what else the machine does falls on both
    runs = [
        (bare_items_per_s(model, size, seconds / 2), saturated(model, size, seconds / 2))
        for _ in range(2)
    ]
    bare = statistics.mean(bare for bare, _ in runs)
    ours = statistics.mean(one.items_per_s for _, one in runs)
    share, idle = 100 * ours / bare, 100 * statistics.mean(one.idle_share for _, one in runs)
    threads = "with" if runs[-1][1].pipelined else "without"
    yield shown(
        f"{title}: in batches of {runs[-1][1].batch_items:.1f}, {threads} host threads",
        f"{ours:.0f}/s, bare loop {bare:.0f}/s",
    )
    name, idle_name = f"{title}: share of the bare loop", f"{title}: idle between batches"
    if full:
        yield at_least(name, share, SHARE_OF_BARE_PERCENT, " %")
        yield at_most(idle_name, idle, IDLE_PERCENT, " %")
    else:
        yield shown(name, f"{share:.0f} %")
        yield shown(idle_name, f"{idle:.1f} %")


def _starts(model: BenchModel, *, full: bool) -> Iterator[Figure]:
    with tempfile.TemporaryDirectory(prefix="headroom-compile-") as cache:
        for words in ("without", "with"):
            command = [sys.executable, "-m", "bench.gpu.start", model.name, "--cache", cache]
            done = subprocess.run(
                [*command, *(["--full"] if full else [])],
                check=True,
                stdout=subprocess.PIPE,
                timeout=START_TIMEOUT_S,
            )
            result = json.loads(done.stdout.splitlines()[-1])
            phases = ", ".join(f"{name} {s:.1f}" for name, s in result["phases"].items())
            yield shown(
                f"{TITLES[model.name]}: start {words} a compile cache",
                f"{sum(result['phases'].values()):.1f} s: {phases} ({result['compiled']})",
            )
