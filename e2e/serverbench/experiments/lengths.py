"""Requests of many lengths: batches by length compared with batches in order of arrival."""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path

from serverbench.experiments import ideal
from serverbench.experiments.knees import highest_rate
from serverbench.experiments.scale import Scale
from serverbench.generator.arrivals import Segment, kinds, lognormal_lengths, poisson
from serverbench.generator.exchange import Kind, request_bytes
from serverbench.loading import SLO_S, Values
from serverbench.running import running
from serverbench.servers import HEADROOM, PADDED_FIFO, V2_PATH, Device
from serverbench.windows import quantile

SHORTEST, LONGEST = 16, 512
MEDIAN, SIGMA = 90.0, 0.87
"""The bounds lie two standard deviations from the median; the mean is 126."""
DISTINCT = 64
MIXED = Device(per_item_s=0.0, per_token_s=0.000004)
"""A request of the mean length adds 0.5 ms, as on the usual device."""
WARMED = (16, 32, 48, 64, 96, 128, 192, 256, 384, 512)
RATES = [float(rate) for rate in range(200, 900, 20)]


def lengths() -> list[int]:
    """Each is as likely as any other."""
    return lognormal_lengths(MEDIAN, SIGMA, (SHORTEST, LONGEST), DISTINCT)


def compared(environment: Path, scale: Scale, seed: int) -> Values:
    """The highest rate of both with p95 in time, and what first come, first served could reach."""
    variables = {
        "HEADROOM_EMULATED_LENGTHS": ",".join(map(str, WARMED)),
        "HEADROOM_WARMUP_MAX_LATENCY_S": "10",
    }
    with ExitStack() as stack:
        ours = stack.enter_context(running(HEADROOM, MIXED, environment, **variables))
        fifo = stack.enter_context(running(PADDED_FIFO, MIXED, environment))
        asked_fifo = [_fifo_kind(length) for length in lengths()]
        fifo_rps = highest_rate(fifo, asked_fifo, RATES, scale, seed)
        ours_rps = highest_rate(ours, [_kind(length) for length in lengths()], RATES, scale, seed)
    return {
        "highest_rps": ours_rps,
        "fifo_rps": fifo_rps,
        "ideal_fifo_rps": ideal_fifo_rps(scale, seed),
    }


def ideal_fifo_rps(scale: Scale, seed: int) -> float:
    """First come, first served, without any overhead."""
    drawn = lengths()

    def holds(rate_rps: float) -> bool:
        due_s = poisson([Segment(rate_rps, scale.knee_s)], seed)
        own = [drawn[kind] for kind in kinds([1.0] * len(drawn), len(due_s), seed)]
        took_s = ideal.latencies_s(due_s, MIXED.batch_s, MIXED.max_batch_size, own)
        return quantile(took_s, 0.95) < SLO_S

    return ideal.highest(RATES, holds) or 0.0


def _kind(length: int) -> Kind:
    numbers = ",".join(["1.0"] * length)
    body = (
        f'{{"inputs":[{{"name":"x","shape":[1,{length}],"datatype":"FP64","data":[{numbers}]}}]}}'
    )
    return Kind(request=request_bytes(V2_PATH, body.encode()), expected=f"[{length}.0]")


def _fifo_kind(length: int) -> Kind:
    numbers = ",".join(["1.0"] * length)
    body = f'{{"instances":[[{numbers}]]}}'
    return Kind(request=request_bytes("/", body.encode()), expected=f"[{length}.0]")
