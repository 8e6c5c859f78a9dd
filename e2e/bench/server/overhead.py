"""CPU per request of the model server and of bare ASGI; throughput, memory and scrape time.

Three servers run at once, each in a process of its own, and are loaded in turn with the same
arrivals, so that what else the machine does falls on all. The bound on CPU is against the bare
application that does the same job (it batches for the same emulated device); the one that answers
at once is measured for scale.
"""

from __future__ import annotations

import contextlib
import os
import statistics
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass

from bench.processes import Process
from bench.server.loading import Load, saturate, send
from free_ports import free_port

FIXED_COST_S = 0.006
PER_ITEM_COST_S = 0.0005
MAX_BATCH_SIZE = 8
IDEAL_RPS = MAX_BATCH_SIZE / (FIXED_COST_S + PER_ITEM_COST_S * MAX_BATCH_SIZE)
RATE_RPS = 500.0
SECONDS, ROUNDS = 4.0, 4


@dataclass(frozen=True, slots=True)
class Overhead:
    """The measured overhead; times in seconds."""

    instant_cpu_s: float
    bare_cpu_s: float
    server_cpu_s: float
    cpu_ratio: float
    p50_s: float
    p95_s: float
    throughput_rps: float
    throughput_ratio: float
    rss_mb: float
    scrape_s: float
    lost: int
    """Requests that did not get the right answer at the open-loop rate."""


@dataclass(frozen=True, slots=True)
class Server:
    """A server under test."""

    process: Process
    port: int


@contextlib.contextmanager
def started(arguments: list[str], port: int, path: str, **env: str) -> Iterator[Server]:
    """A Python process that answers 200 at `path`; stopped at the end."""
    child = subprocess.Popen([sys.executable, *arguments], env={**os.environ, **env})
    try:
        _await_ok(f"http://127.0.0.1:{port}{path}", child)
        yield Server(Process(child.pid), port)
    finally:
        child.terminate()
        child.wait(timeout=30)


def measure_overhead() -> Overhead:
    """Alternate between the servers, then saturate Headroom's."""
    instant_port, bare_port, port = free_port(), free_port(), free_port()
    settings = {
        "HEADROOM_ENGINE": "emulated",
        "HEADROOM_HOST": "127.0.0.1",
        "HEADROOM_PORT": str(port),
        "HEADROOM_MAX_BATCH_SIZE": str(MAX_BATCH_SIZE),
        "HEADROOM_EMULATED_FIXED_COST_S": str(FIXED_COST_S),
        "HEADROOM_EMULATED_PER_ITEM_COST_S": str(PER_ITEM_COST_S),
        "HEADROOM_EMULATED_LOAD_S": "0",
        "HEADROOM_DRAIN_DELAY_S": "0",
    }
    bare_arguments = ["-m", "bench.server.bare"]
    with (
        started([*bare_arguments, "instant", str(instant_port)], instant_port, "") as instant,
        started([*bare_arguments, "batching", str(bare_port)], bare_port, "") as bare,
        started(["-m", "headroom_server"], port, "/v2/health/ready", **settings) as server,
    ):
        servers = (instant, bare, server)
        runs = [tuple(_cpu_per_request(one, seed) for one in servers) for seed in range(ROUNDS)]
        scrape_s = _scrape_s(port)
        saturated = saturate(port, 6 * MAX_BATCH_SIZE, SECONDS)
        rss_mb = server.process.rss_mb
    throughput_rps = saturated.ok / saturated.seconds
    return Overhead(
        instant_cpu_s=statistics.median(run[0][0] for run in runs),
        bare_cpu_s=statistics.median(run[1][0] for run in runs),
        server_cpu_s=statistics.median(run[2][0] for run in runs),
        cpu_ratio=statistics.median(run[2][0] / run[1][0] for run in runs),
        p50_s=statistics.median(run[2][1].quantile_s(0.5) for run in runs),
        p95_s=statistics.median(run[2][1].quantile_s(0.95) for run in runs),
        throughput_rps=throughput_rps,
        throughput_ratio=throughput_rps / IDEAL_RPS,
        rss_mb=rss_mb,
        scrape_s=scrape_s,
        lost=sum(run[2][1].requests - run[2][1].ok for run in runs),
    )


def _cpu_per_request(server: Server, seed: int) -> tuple[float, Load]:
    before_s = server.process.cpu_s
    result = send([server.port], RATE_RPS, SECONDS, seed, clients=0)
    return (server.process.cpu_s - before_s) / result.ok, result


def _scrape_s(port: int) -> float:
    seconds = []
    for _ in range(20):
        began_s = time.perf_counter()
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=5) as answer:
            answer.read()
        seconds.append(time.perf_counter() - began_s)
    return statistics.median(seconds)


def _await_ok(url: str, child: subprocess.Popen[bytes]) -> None:
    for _ in range(200):
        if child.poll() is not None:
            raise RuntimeError(f"the server at {url} ended with {child.returncode}")
        with contextlib.suppress(OSError), urllib.request.urlopen(url, timeout=5) as answer:
            answer.read()
            return
        time.sleep(0.1)
    raise RuntimeError(f"no answer from {url} within 20 s")
