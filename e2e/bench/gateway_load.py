"""Open-loop load from clients that keep their connections: prints one JSON line.

Each client is led to one of `--ports` and stays there, as behind a ClusterIP; with one port, that
of a gateway, all are. Latency counts from the intended time.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import random
import time

import uvloop

from bench.gateway_replicas import TAKES, spread
from bench.server_load import Client, Results

PATH = "/v1/models/model:predict"


async def run(options: argparse.Namespace) -> Results:
    """Poisson arrivals, each at a client by chance; no answer counts as one that never comes."""
    chance, times = random.Random(options.seed), random.Random(f"{options.seed} takes")
    ports = [chance.choice(options.ports) for _ in range(options.clients)]
    clients = [Client(port, PATH, options.tenant) for port in ports]
    tasks = set()
    began_s = due_s = time.perf_counter()
    while (due_s := due_s + chance.expovariate(options.rate)) < began_s + options.seconds:
        await asyncio.sleep(max(0.0, due_s - time.perf_counter()))
        client = chance.choice(clients)
        takes = TAKES % (options.takes * spread(times, 1.0)) if options.takes else b""
        task = asyncio.create_task(client.once(due_s, takes))
        tasks.add(task)
        task.add_done_callback(tasks.discard)
    late = len((await asyncio.wait(tasks, timeout=3))[1]) if tasks else 0
    found = Results()
    for client in clients:
        found.latencies_s += client.results.latencies_s
        for what, number in client.results.other.items():
            found.other[what] = found.other.get(what, 0) + number
    found.latencies_s += [float("inf")] * (late + sum(found.other.values()))
    return found


def main() -> None:
    """Command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--ports", type=int, nargs="+", required=True)
    parser.add_argument("--rate", type=float, required=True)
    parser.add_argument("--seconds", type=float, default=5.0)
    parser.add_argument("--clients", type=int, default=64)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--tenant", default="")
    parser.add_argument("--takes", type=float, default=0.0, help="seconds, on average")
    found = uvloop.run(run(parser.parse_args()))
    quantiles = {f"p{q}_s": min(1e9, found.percentile_s(q / 100)) for q in (50, 95, 99)}
    print(json.dumps(quantiles | {"requests": len(found.latencies_s)}))


if __name__ == "__main__":
    main()
