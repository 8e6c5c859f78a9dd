"""Our engine's decodes against the time in which the device reads the weights once.

A decode reads every weight once, whatever the batch: on a GPU that is what it should take.
"""

from __future__ import annotations

import statistics
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import torch

from bench.figures import Figure, at_most, shown
from bench.generation.model import LARGE, Size, make_model
from headroom_server.generation.loop.warming import decodes
from headroom_server.torch_generation.executor import TorchExecutor
from headroom_server.torch_generation.loading import ExecutorOptions

BATCHES = (1, 8, 32)
REPEATS = 20
READ_BYTES, FEW_BYTES = 1 << 30, 1 << 26
MOST_TIMES_READING = 1.3


def measure(*, full: bool) -> Iterator[Figure]:
    """Return the figures; only those of a GPU are promised."""
    size, dtype = (LARGE, "bfloat16") if full else (Size(), "float32")
    device = torch.device("cuda" if full else "cpu")
    with tempfile.TemporaryDirectory(prefix="headroom-llama-") as folder:
        weights = make_model(Path(folder), size)
        rate = _bytes_per_s(device, READ_BYTES if full else FEW_BYTES)
        read_s = weights * (2 if full else 4) / rate
        yield shown(
            f"Llama of {weights / 1e6:.0f} M weights, {dtype}: reading them once",
            f"{read_s * 1000:.2f} ms at {rate / 1e9:.0f} GB/s",
        )
        for graphs in (False, True) if full else (False,):
            options = ExecutorOptions(
                dtype=dtype,
                max_sequences=max(BATCHES),
                threads=1,
                kv_bytes=1 << 28,
                decode_graphs=graphs,
            )
            executor = TorchExecutor(Path(folder), options, device=device)
            executor.load()
            yield from _decodes(executor, read_s, graphs=graphs, full=full)
            executor.unload()


def _decodes(
    executor: TorchExecutor, read_s: float, *, graphs: bool, full: bool
) -> Iterator[Figure]:
    """Return the figures of decodes; those of recorded ones are promised."""
    for batch in BATCHES:
        iteration = decodes(executor.limits, batch, 0)
        seconds = _median_s(lambda iteration=iteration: executor.execute(iteration))  # type: ignore[misc]
        how = "recorded" if graphs else "kernel by kernel"
        name = f"a decode of {batch}, {how}, against reading the weights once"
        if graphs:
            yield at_most(name, seconds / read_s, MOST_TIMES_READING, "x", 2)
        else:
            yield shown(name, f"{seconds / read_s:.2f}x, {seconds * 1000:.2f} ms")
    if graphs:
        recorded = () if executor.graphs is None else executor.graphs.recorded
        yield shown("sizes recorded", ", ".join(map(str, recorded)) or "none: see the log")


def _bytes_per_s(device: torch.device, size: int) -> float:
    """Return how fast the device reads memory: the sum of a vector."""
    vector = torch.ones(size // 4, device=device)
    return size / _median_s(lambda: vector.sum().item())


def _median_s(run: Callable[[], object]) -> float:
    """Return the median seconds of a call that ends with its result in host memory."""
    run()
    seconds = []
    for _ in range(REPEATS):
        began_s = time.perf_counter()
        run()
        seconds.append(time.perf_counter() - began_s)
    return statistics.median(seconds)
