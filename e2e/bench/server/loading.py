"""Sends load to a local server with the load generator of `serverbench`."""

from __future__ import annotations

import math
import random
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from statistics import NormalDist

from serverbench.generator.arrivals import Segment
from serverbench.generator.exchange import OK, Answers, Kind, Plan, request_bytes
from serverbench.loading import generate

PATH = "/v1/models/model:predict"
BODY = b'{"instances":[[1.0,2.0,3.0,4.0]]}'
ANSWER = b'{"predictions":[10.0]}'
TAKES_HEADER = "x-takes"
"""Header with the seconds that a request takes."""
DURATIONS = 500
NEVER_S = 1e9
"""The latency of a request without the right answer."""


@dataclass(frozen=True, slots=True)
class Load:
    """The requests of one run: their latencies and outcomes."""

    latencies_s: tuple[float, ...]
    """Sorted; NEVER_S for each request without the right answer."""
    seconds: float
    """From the first request to the last answer."""
    failures: Mapping[int, int] = field(default_factory=dict)
    """Requests without the right answer, by HTTP status or `Status`."""

    @classmethod
    def of(cls, answers: Answers) -> Load:
        """Read the generator's answers."""
        took_s = [
            NEVER_S if took is None or status != OK else took
            for took, status in zip(answers.took_s, answers.statuses, strict=True)
        ]
        ends_s = (
            due + took
            for due, took in zip(answers.due_s, answers.took_s, strict=True)
            if took is not None
        )
        failures = Counter(
            status
            for took, status in zip(answers.took_s, answers.statuses, strict=True)
            if took is None or status != OK
        )
        return cls(tuple(sorted(took_s)), max(ends_s, default=0.0), failures)

    @property
    def requests(self) -> int:
        """Return the number of requests."""
        return len(self.latencies_s)

    @property
    def ok(self) -> int:
        """Return the number of requests with the right answer."""
        return sum(1 for one in self.latencies_s if one < NEVER_S)

    def quantile_s(self, q: float) -> float:
        """Return the nearest rank; 0 without requests."""
        ordered = self.latencies_s
        return ordered[min(len(ordered) - 1, int(q * len(ordered)))] if ordered else 0.0


def saturate(port: int, in_flight: int, seconds: float = 5.0) -> Load:
    """Keep this many requests in flight."""
    plan = Plan(
        port=port,
        segments=(Segment(1.0, seconds),),
        kinds=(Kind(request=request_bytes(PATH, BODY), expected=ANSWER.decode()),),
        warm_connections=0,
        in_flight=in_flight,
    )
    return Load.of(generate(plan))


def send(
    ports: Sequence[int],
    rate_rps: float,
    seconds: float = 5.0,
    seed: int = 1,
    *,
    clients: int = 64,
    tenant: str = "",
    takes_s: float = 0.0,
) -> Load:
    """Send Poisson arrivals from clients, each of which keeps its connections to one of the ports.

    With 0 clients all requests share the connections to the first port.

    `takes_s` is the mean of the lognormal durations (coefficient of variation 1) that requests ask
    for; 0: the server decides.
    """
    chance = random.Random(seed)
    headers = [("x-tenant", tenant)] if tenant else []
    durations = _durations(takes_s) if takes_s else [None]
    plan = Plan(
        port=ports[0],
        clients=tuple(chance.choice(ports) for _ in range(clients)),
        segments=(Segment(rate_rps, seconds),),
        kinds=tuple(
            Kind(
                request=request_bytes(
                    PATH,
                    BODY,
                    headers=[*headers, *([(TAKES_HEADER, f"{one:.6f}")] if one else [])],
                ),
                expected=ANSWER.decode(),
            )
            for one in durations
        ),
        seed=seed,
        warm_connections=0,
        timeout_s=seconds + 3.0,
        max_connections=20_000,
    )
    return Load.of(generate(plan))


def _durations(mean_s: float) -> list[float]:
    """Return equally likely durations of a lognormal with a coefficient of variation of 1.

    Each is the mean within its quantiles, so that all together have the mean exactly.
    """
    sigma = math.sqrt(math.log(2.0))
    return [mean_s * DURATIONS * share for share in _shares_of_the_mean(sigma)]


def _shares_of_the_mean(sigma: float) -> Iterator[float]:
    # The mean of a lognormal below its quantile p is the share Phi(Phi^-1(p) - sigma) of the whole.
    normal = NormalDist()
    inner = [normal.cdf(normal.inv_cdf(at / DURATIONS) - sigma) for at in range(1, DURATIONS)]
    for low, high in pairwise([0.0, *inner, 1.0]):
        yield high - low
