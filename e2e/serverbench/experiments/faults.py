"""Cases with faults: the device slows down, clients leave, SIGTERM arrives."""

from __future__ import annotations

import json
import math
import signal
import socket
import subprocess
import threading
import time
from pathlib import Path

from serverbench.experiments.exposition import grown, series, total
from serverbench.experiments.rates import OVERLOAD
from serverbench.experiments.scale import Scale
from serverbench.generator.arrivals import Segment
from serverbench.loading import IMPATIENT_S, SLO_S, Values, load
from serverbench.running import Running, running
from serverbench.servers import HEADROOM, SLOW_FACTOR, Device, Server

ADAPTED_S = 5.0
"""Time within which the server must learn that its device has become slower."""
CLIENTS = 1000
LONG_BATCH_S = 1.5
IN_FLIGHT = 16
STOPPED_BATCH_S = 0.4
POLL_S = 0.002
EXIT_PATIENCE_S = 20.0


def slow(environment: Path, scale: Scale, seed: int) -> Values:
    """An overload during which the device becomes half as fast; the rate stays."""
    device = Device(slow_after_s=scale.slow_after_s)
    with running(HEADROOM, device, environment) as target:
        loaded_s = _loaded_s(target)
        slow_s = loaded_s + scale.slow_after_s
        lasts_s = slow_s - time.monotonic() + ADAPTED_S + scale.slow_judged_s
        run = load(
            target,
            [target.server.kind(x_request_timeout=f"{SLO_S}")],
            Segment(OVERLOAD * device.capacity_rps, lasts_s),
            seed=seed,
            timeout_s=IMPATIENT_S,
        )
    at_s = slow_s - run.began_s
    before = run.window.between(min(2.0, at_s / 2), at_s)
    after = run.window.between(at_s + ADAPTED_S, lasts_s)
    return {
        "before_rps": before.good_rps(SLO_S),
        "good_rps": after.good_rps(SLO_S),
        "first_rps": run.window.between(at_s, at_s + ADAPTED_S).good_rps(SLO_S),
        "capacity_rps": device.capacity_rps / SLOW_FACTOR,
        "others_cores": run.others_cores,
    }


def _loaded_s(target: Running) -> float:
    """Return when the model was loaded, on the monotonic clock, from the readiness body."""
    phase_s: dict[str, float] = json.loads(target.get("/v2/health/ready"))["phase_seconds"]
    later = list(phase_s)[list(phase_s).index("load") + 1 :]
    return time.monotonic() - sum(phase_s[phase] for phase in later)


def disconnect(environment: Path) -> Values:
    """Clients that ask while a long batch runs, and are gone before it ends: then nothing runs."""
    device = Device(fixed_s=LONG_BATCH_S, per_item_s=0.0, max_batch_size=1)
    variables = {
        "HEADROOM_MAX_WAITING": f"{2 * CLIENTS}",
        "HEADROOM_WARMUP_REQUESTS": "1",
        "HEADROOM_WARMUP_MAX_LATENCY_S": "10",
    }
    with running(HEADROOM, device, environment, **variables) as target:
        before = series(target.get("/metrics").decode())
        request = target.server.kind().request.encode("latin-1")
        clients = [socket.create_connection(("127.0.0.1", target.port)) for _ in range(CLIENTS)]
        occupant = threading.Thread(target=target.probe)
        occupant.start()
        time.sleep(LONG_BATCH_S / 10)
        for client in clients:
            client.sendall(request)
        for client in clients:
            client.close()
        occupant.join()
        time.sleep(2 * LONG_BATCH_S)
        target.probe()
        after = series(target.get("/metrics").decode())
    counted = grown(after, before)
    executed = total(counted, "execution_duration_seconds_count")
    return {
        "extra_batches": executed - 2,
        "device_s": total(counted, "device_busy_seconds_total") - 2 * LONG_BATCH_S,
        "cancelled": counted.get(("requests_total", "cancelled"), 0.0),
    }


def sigterm(server: Server, environment: Path) -> Values:
    """Two batches' worth of requests in flight when the signal comes."""
    device = Device(fixed_s=STOPPED_BATCH_S)
    with running(server, device, environment) as target:
        right = [False] * IN_FLIGHT
        askers = [
            threading.Thread(target=_asked, args=(target, right, n)) for n in range(IN_FLIGHT)
        ]
        for asker in askers:
            asker.start()
        time.sleep(STOPPED_BATCH_S / 4)
        signalled_s = time.monotonic()
        target.process.send_signal(signal.SIGTERM)
        unready_s = _unready_s(target, signalled_s + EXIT_PATIENCE_S / 4)
        for asker in askers:
            asker.join(timeout=EXIT_PATIENCE_S)
        try:
            code = target.process.wait(max(0.1, signalled_s + EXIT_PATIENCE_S - time.monotonic()))
            exit_s = time.monotonic() - signalled_s
        except subprocess.TimeoutExpired:
            code, exit_s = -1, math.inf
    return {
        "answered": sum(right),
        "unready_ms": 1000 * (unready_s - signalled_s),
        "exit_s": exit_s,
        "exit_code": code,
    }


def _asked(target: Running, right: list[bool], number: int) -> None:
    try:
        right[number] = target.probe(timeout_s=EXIT_PATIENCE_S)
    except OSError:
        right[number] = False


def _unready_s(target: Running, until_s: float) -> float:
    """Return when readiness was first denied, on a new connection each time; infinite if never."""
    while (now_s := time.monotonic()) < until_s:
        try:
            target.get(target.server.ready_path, timeout_s=1.0)
        except OSError:
            return time.monotonic()
        time.sleep(max(0.0, now_s + POLL_S - time.monotonic()))
    return math.inf
