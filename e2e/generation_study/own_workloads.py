"""Workloads of which no cell is reported: to find causes on, never to judge by.

Reasoning with heavy tails, rare answers of 20,000 to 60,000 tokens among short ones, agents whose
contexts grow, surges of twice the rate, answers that become twice as long within a minute, and two
classes of requests whose mix changes.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from headroom.simulator.generation.autoscalers.bounds import work_shares
from headroom.simulator.generation.models import ENGINES, targets
from headroom.simulator.generation.plant import TokenService
from headroom.simulator.generation.requests import Floats, Ints, Requests
from headroom.simulator.generation.workloads import lognormal_lengths, poisson

DURATION_S = 5400.0
MEAN_REPLICAS = 5.0
_BIN_S = 10.0
_FULL_USE = 0.6
"""Share of a replica that the scaling assumes."""
_SURGE_S = (1800.0, 3600.0)
_CHANGE_S = 2700.0
_LONG_SHARE, _LONG_TOKENS = 0.01, (20_000, 60_001)

Draw = Callable[[Floats, np.random.Generator], tuple[Ints, Ints]]


@dataclass(frozen=True, kw_only=True)
class Workload:
    """A service with its requests."""

    name: str
    service: TokenService
    requests: Requests


def reasoning(arrival_s: Floats, random: np.random.Generator) -> tuple[Ints, Ints]:
    """Draw short prompts, and answers of 1500 tokens whose deviation is twice the mean."""
    return _lengths(arrival_s, 300.0, 0.6, random), _lengths(arrival_s, 1500.0, 2.0, random)


def rare_long_answers(arrival_s: Floats, random: np.random.Generator) -> tuple[Ints, Ints]:
    """Draw a conversation's lengths, with one answer of 100 between 20,000 and 60,000 tokens."""
    prompt, output = chat(arrival_s, random)
    long = random.random(len(arrival_s)) < _LONG_SHARE
    return prompt, np.where(long, random.integers(*_LONG_TOKENS, len(arrival_s)), output)


def agents(arrival_s: Floats, random: np.random.Generator) -> tuple[Ints, Ints]:
    """Draw prompts that grow from 2,000 to 16,000 tokens within half an hour, thrice."""
    grown = 2000.0 * 8.0 ** (arrival_s % 1800.0 / 1800.0)
    return lognormal_lengths(grown, 0.5, random), _lengths(arrival_s, 120.0, 0.7, random)


def chat(arrival_s: Floats, random: np.random.Generator) -> tuple[Ints, Ints]:
    """Draw the lengths of a conversation."""
    return _lengths(arrival_s, 1200.0, 1.0, random), _lengths(arrival_s, 220.0, 0.8, random)


def longer_answers(arrival_s: Floats, random: np.random.Generator) -> tuple[Ints, Ints]:
    """Draw answers that become twice as long within a minute."""
    factor = 2.0 ** np.clip((arrival_s - _CHANGE_S) / 60.0, 0.0, 1.0)
    return _lengths(arrival_s, 900.0, 0.8, random), lognormal_lengths(200.0 * factor, 0.8, random)


def two_classes(arrival_s: Floats, random: np.random.Generator) -> tuple[Ints, Ints]:
    """Draw documents (long prompts) and reasoning (long answers), whose shares swap slowly."""
    share = 0.5 + 0.4 * np.sin(2.0 * np.pi * arrival_s / 3600.0)
    documents = random.random(len(arrival_s)) < share
    prompt = lognormal_lengths(np.where(documents, 6000.0, 300.0), 0.6, random)
    return prompt, lognormal_lengths(np.where(documents, 80.0, 900.0), 0.8, random)


def surges(at_s: Floats) -> Floats:
    """Return 1, and 2 in ten minutes after each time of a surge."""
    since_s = at_s[:, np.newaxis] - np.array(_SURGE_S)
    found: Floats = np.where(((since_s >= 0.0) & (since_s < 600.0)).any(axis=1), 2.0, 1.0)
    return found


def steady(at_s: Floats) -> Floats:
    """Return 1."""
    return np.ones(len(at_s))


def workloads(seed: int) -> list[Workload]:
    """Return all workloads with the draws of one seed."""
    kinds: list[tuple[str, Draw, Callable[[Floats], Floats], str, float]] = [
        ("reasoning", reasoning, steady, "qwen3-32b-tp2-h100", 100.0),
        ("rare-long-answers", rare_long_answers, steady, "qwen3-32b-tp2-h100", 100.0),
        ("agents", agents, steady, "llama-70b-tp4-h100", 100.0),
        ("surges", chat, surges, "llama-8b-h100", 100.0),
        ("surges", chat, surges, "qwen3-32b-tp2-h100", 300.0),
        ("longer-answers", longer_answers, steady, "llama-8b-h100", 100.0),
        ("two-classes", two_classes, steady, "qwen3-30b-a3b-h100", 100.0),
    ]
    return [
        _workload(f"{name} {engine} {start_s:g}s", draw, level, engine, start_s, seed)
        for name, draw, level, engine, start_s in kinds
    ]


def _workload(
    name: str, draw: Draw, level: Callable[[Floats], Floats], engine: str, start_s: float, seed: int
) -> Workload:
    service = TokenService(
        engine=ENGINES[engine],
        targets=targets(*_TARGETS_S.get(engine, (3.0, 0.075))),
        start_s=start_s,
        max_replicas=40,
    )
    rates = level((np.arange(int(DURATION_S / _BIN_S)) * _BIN_S).astype(np.float64))
    rate_rps = 1.0
    for _ in range(3):
        arrival_s = poisson(rate_rps * rates / rates.mean(), _BIN_S, seed)
        prompt, output = draw(arrival_s, np.random.default_rng([seed, 1]))
        requests = Requests(arrival_s=arrival_s, prompt_tokens=prompt, output_tokens=output)
        rate_rps *= MEAN_REPLICAS / _replicas(service, requests, DURATION_S)
    first = requests.taken(requests.arrival_s < 60.0)
    needed = max(1, min(service.max_replicas, math.ceil(_replicas(service, first, 60.0))))
    return Workload(name=name, service=replace(service, initial_replicas=needed), requests=requests)


_TARGETS_S = {"llama-8b-h100": (1.0, 0.05), "qwen3-30b-a3b-h100": (1.5, 0.075)}


def _replicas(service: TokenService, requests: Requests, seconds: float) -> float:
    output = service.targets.output_token
    assert output is not None
    bounded = requests.bounded(service.engine.context_tokens)
    shares = work_shares(service.engine, bounded, output.seconds)
    return float(shares.sum()) / seconds / _FULL_USE


def _lengths(arrival_s: Floats, mean: float, cv: float, random: np.random.Generator) -> Ints:
    return lognormal_lengths(np.full(len(arrival_s), mean), cv, random)
