"""Runs in vLLM's own Python: answers requests, with the CPU time of its process as the clock.

A request arrives when that clock has reached its time, as on a machine of its own; while nothing
runs, the clock jumps to the next arrival. What else the machine does is so not counted. A line
of JSON in: the requests of a load. A line out: every iteration, and each request's first and last
token.
"""

from __future__ import annotations

import contextlib
import json
import os
import sys
import time
from typing import Any

from vllm import SamplingParams, TokensPrompt
from vllm.engine.arg_utils import EngineArgs
from vllm.v1.engine.llm_engine import LLMEngine


def main() -> None:
    """Answer loads until the input ends."""
    folder, limits = sys.argv[1], json.loads(sys.argv[2])
    out = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)  # vLLM prints
    engine = LLMEngine.from_engine_args(
        EngineArgs(
            model=folder,
            dtype="float32",
            enforce_eager=True,
            enable_prefix_caching=False,
            async_scheduling=False,
            distributed_executor_backend="uni",
            disable_log_stats=True,
            **limits,
        )
    )
    core = engine.engine_core.engine_core
    out.write(json.dumps({"ready": True}) + "\n")
    for number, line in enumerate(sys.stdin):
        out.write(json.dumps(Load(engine, core, json.loads(line), number).played()) + "\n")


class Load:
    """The requests of one load on their way."""

    def __init__(self, engine: Any, core: Any, wanted: list[Any], number: int) -> None:
        """`wanted`: arrival in seconds, the prompt, and the tokens of the answer of each."""
        self.engine, self.core, self.wanted, self.number = engine, core, wanted, number
        self.first: list[float] = [0.0] * len(wanted)
        self.end: list[float] = [0.0] * len(wanted)
        self.lengths = [len(prompt) for _, prompt, _ in wanted]
        self.generated = [0] * len(wanted)
        self.iterations: list[list[float]] = []
        self.preempted = 0

    def played(self) -> dict[str, Any]:
        """Play the load and return what happened."""
        now_s, index = 0.0, 0
        with self._observed() as seen:
            while index < len(self.wanted) or self.engine.has_unfinished_requests():
                if not self.engine.has_unfinished_requests():
                    now_s = max(now_s, self.wanted[index][0])
                while index < len(self.wanted) and self.wanted[index][0] <= now_s:
                    self._add(index)
                    index += 1
                seen.clear()
                began_s = time.process_time()
                outputs = self.engine.step()
                took_s = time.process_time() - began_s
                now_s += took_s
                self.iterations.append([*self._features(seen[0]), round(took_s, 6)])
                self._answered(outputs, now_s)
        return {
            "first_s": [round(one, 6) for one in self.first],
            "end_s": [round(one, 6) for one in self.end],
            "iterations": self.iterations,
            "preempted": self.preempted,
        }

    def _add(self, index: int) -> None:
        _, prompt, tokens = self.wanted[index]
        params = SamplingParams(
            max_tokens=tokens, ignore_eos=True, temperature=0.0, detokenize=False
        )
        self.engine.add_request(
            f"{self.number}-{index}", TokensPrompt(prompt_token_ids=prompt), params
        )

    @contextlib.contextmanager
    def _observed(self) -> Any:
        """Keep what the scheduler chooses for each iteration."""
        seen: list[Any] = []
        schedule = self.core.scheduler.schedule

        def scheduled(*given: Any, **named: Any) -> Any:
            seen.append(schedule(*given, **named))
            return seen[-1]

        self.core.scheduler.schedule = scheduled
        try:
            yield seen
        finally:
            del self.core.scheduler.schedule

    def _features(self, chosen: Any) -> list[float]:
        """Return P, D, KV and X of an iteration, as the plant counts them."""
        before = {one.req_id: one.num_computed_tokens for one in chosen.scheduled_new_reqs}
        cached = chosen.scheduled_cached_reqs
        before.update(zip(cached.req_ids, cached.num_computed_tokens, strict=True))
        self.preempted += len(chosen.preempted_req_ids or ())
        prompts = decoding = contexts = products = 0.0
        for key, count in chosen.num_scheduled_tokens.items():
            computed, index = before[key], _index(key)
            known = self.lengths[index] + self.generated[index]
            if count == 1 and computed == known - 1 and self.generated[index]:
                decoding += 1
                contexts += known
            else:
                prompts += count
                products += count * (computed + count / 2)
        return [prompts, decoding, contexts, products]

    def _answered(self, outputs: list[Any], now_s: float) -> None:
        for one in outputs:
            index = _index(one.request_id)
            count = len(one.outputs[0].token_ids)
            if count and not self.generated[index]:
                self.first[index] = now_s
            self.generated[index] = count
            if one.finished:
                self.end[index] = now_s


def _index(key: str) -> int:
    """Return the number of a request from its id, to which vLLM adds a part."""
    return int(key.split("-")[1])


if __name__ == "__main__":
    main()
