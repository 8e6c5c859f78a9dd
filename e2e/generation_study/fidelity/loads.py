"""The loads of the comparison with vLLM: rates are shares of what the calibrated engine carries."""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from headroom.scaling.generation.replica_model.work import work_of
from headroom.scaling.values.tokens import IterationCost, RequestShape

LIMITS: Mapping[str, int] = {
    "max_model_len": 2048,
    "max_num_seqs": 32,
    "max_num_batched_tokens": 512,
    "block_size": 32,
    "num_gpu_blocks_override": 256,
}
"""Settings of vLLM's engine."""
VOCABULARY = 255


class Request(NamedTuple):
    """One request."""

    arrival_s: float
    prompt_tokens: int
    output_tokens: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Load:
    """Requests of some lengths at a share of the engine's time."""

    name: str
    prompt_tokens: int
    output_tokens: int
    share: float
    requests: int = 80
    spread: float = 0.5
    """Lengths are uniform within this much of their means."""
    burst: int = 1
    """Requests that arrive together."""

    def drawn(self, cost: IterationCost) -> list[Request]:
        """Return the requests: Poisson bursts at the share of what this cost carries."""
        chance = random.Random(self.name)
        gap_s = self.burst * self._work_s(cost) / self.share
        found, at_s = [], 0.0
        for index in range(self.requests):
            if index % self.burst == 0:
                at_s += chance.expovariate(1.0 / gap_s)
            lengths = (self.prompt_tokens, self.output_tokens)
            prompt, output = (
                max(2, round(mean * chance.uniform(1.0 - self.spread, 1.0 + self.spread)))
                for mean in lengths
            )
            found.append(Request(round(at_s, 6), prompt, output))
        return found

    def _work_s(self, cost: IterationCost) -> float:
        """Engine seconds of a request when as many as fit run together."""
        prompt, output = float(self.prompt_tokens), float(self.output_tokens)
        shape = RequestShape(
            prompt_tokens=prompt,
            computed_tokens=prompt,
            output_tokens=output,
            prompt_tokens_squared=prompt * prompt,
            output_tokens_squared=output * output,
            prompt_output_product=prompt * output,
        )
        work = work_of(cost, shape)
        memory = LIMITS["block_size"] * LIMITS["num_gpu_blocks_override"]
        together = min(LIMITS["max_num_seqs"], memory / (prompt + output))
        return work.request_s + work.steps * work.fixed_s / together


LOADS = (
    Load(name="chat, 30 %", prompt_tokens=200, output_tokens=40, share=0.3),
    Load(name="chat, 50 %", prompt_tokens=200, output_tokens=40, share=0.5),
    Load(name="chat, 70 %", prompt_tokens=200, output_tokens=40, share=0.7),
    Load(name="chat, 85 %", prompt_tokens=200, output_tokens=40, share=0.85),
    Load(name="long prompts, 50 %", prompt_tokens=800, output_tokens=15, share=0.5, requests=60),
    Load(name="long prompts, 75 %", prompt_tokens=800, output_tokens=15, share=0.75, requests=60),
    Load(name="long answers, 50 %", prompt_tokens=50, output_tokens=100, share=0.5, requests=60),
    Load(name="long answers, 80 %", prompt_tokens=50, output_tokens=100, share=0.8, requests=60),
    Load(
        name="long contexts, 105 %", prompt_tokens=300, output_tokens=150, share=1.05, requests=50,
        spread=0.2,
    ),
    Load(name="bursts of 12, 50 %", prompt_tokens=150, output_tokens=40, share=0.5, burst=12),
    Load(name="mixed lengths, 70 %", prompt_tokens=300, output_tokens=50, share=0.7, spread=0.95),
)  # fmt: skip
CALIBRATION = "calibration"


def calibration() -> list[Request]:
    """Return batches of all sizes and lengths, each after the one before: no load is compared."""
    chance, at_s, found = random.Random(CALIBRATION), 0.0, []
    for size in (1, 2, 4, 8, 16, 32, 12):
        for prompt, output in ((30, 12), (240, 8), (700, 4)):
            kept = min(size, 8000 // (prompt + output))
            found += [
                Request(
                    at_s,
                    max(2, round(prompt * chance.uniform(0.5, 1.5))),
                    max(2, round(output * chance.uniform(0.5, 1.5))),
                )
                for _ in range(kept)
            ]
            at_s += 1000.0
    return found


def prompts(requests: Sequence[Request], seed: str) -> Iterator[list[object]]:
    """Yield what vLLM is sent: arrival, tokens drawn at random, tokens of the answer."""
    chance = random.Random(seed)
    for one in requests:
        tokens = [chance.randrange(1, VOCABULARY) for _ in range(one.prompt_tokens)]
        yield [one.arrival_s, tokens, one.output_tokens]
