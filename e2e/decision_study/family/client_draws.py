"""Clients that depend on the answers: a bounded number of connections, users, or retries. Pure."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from decision_study.family.draws import Draws
from headroom.simulator.autoscalers.peer import window_rates
from headroom.simulator.clients import Clients, Users
from headroom.simulator.plant import ServiceSpec

LIMITED, USERS, RETRYING = "limited", "users", "retrying"
KINDS = (LIMITED, USERS, RETRYING)
_CONNECTIONS = (16, 64, 256)
_STEP_S = 60
_SUDDEN = ("clumps", "self-exciting")
"""Classes that users who wait for answers cannot make."""


def kind_of(draws: Draws, load: str) -> str:
    """Return a random kind that can make this class of workload."""
    return draws.one_of([kind for kind in KINDS if kind != USERS or load not in _SUDDEN])


def clients_of(
    kind: str, draws: Draws, spec: ServiceSpec, counts: NDArray[np.float64]
) -> Clients | None:
    """Return the service's clients; None if they could not ask for the load in time.

    `counts` are the requests of each second, [seconds], that the load has without a limit.
    """
    usual = spec.clients
    if kind == LIMITED:
        return _limited(draws, spec, counts)
    if kind == USERS:
        think_s = draws.scale(1, 20)
        cycle_s = think_s + 0.5 * spec.policy.latency_target_s
        return replace(usual, users=_users(counts, cycle_s), think_s=think_s)
    return replace(
        usual,
        timeout_s=draws.scale(1.2, 5) * spec.policy.latency_target_s,
        retries=draws.one_of((1, 2, 4, 8)),
        backoff_s=draws.one_of((0.0, draws.scale(0.2, 5))),
        retries_marked=draws.one_of((False, False, True)),
    )


def _limited(draws: Draws, spec: ServiceSpec, counts: NDArray[np.float64]) -> Clients | None:
    """Return clients with 16, 64 or 256 connections, enough for the busiest 20 s.

    By Little's law a request that takes half the latency target needs rate x target / 2.
    """
    peak_rps = float(window_rates(counts, 20).max())
    needed = max(peak_rps * 0.5 * spec.policy.latency_target_s, 4.0 * spec.server.max_batch)
    enough = [number for number in _CONNECTIONS if number >= needed]
    if not enough:
        return None
    return replace(
        spec.clients,
        connections=draws.one_of(enough),
        connection_requests=draws.one_of((None, None, 100)),
    )


def _users(counts: NDArray[np.float64], cycle_s: float) -> Users:
    """Return how many users ask for this load, a step per minute.

    Worked: 6 requests per second, a cycle of 2.5 s: 15 users.
    """
    rates = window_rates(counts, _STEP_S)
    return tuple(
        (float(_STEP_S * minute), round(float(rate) * cycle_s)) for minute, rate in enumerate(rates)
    )
