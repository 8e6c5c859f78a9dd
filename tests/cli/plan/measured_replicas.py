"""Replicas that generate text, as `headroom plan generation --measure` sees them."""

from __future__ import annotations

import math
from collections.abc import Iterator

FIXED_S, PROMPT_S, SEQUENCE_S = 0.03, 0.00002, 0.003
PROMPT, ANSWER = 800, 100


class Replica:
    """Pages of a server whose batches grow and shrink, at a clock of its own."""

    def __init__(self, *, silent: bool = False, quiet: bool = False, slowdown: float = 1.0) -> None:
        self.slowdown = slowdown
        self.now_s, self.silent, self.quiet = 0.0, silent, quiet
        self.sequence_s = 0.0
        self.iterations = self.busy_s = self.prompts = self.generated = 0.0
        self.xx = [[0.0] * 5 for _ in range(5)]
        self.xy = [0.0] * 5
        self.ended = 0
        self._batches = self._wave()

    def _wave(self) -> Iterator[int]:
        step = 0
        while True:
            step += 1
            yield 1 if self.quiet else 8 + round(6 * math.sin(step / 40))

    def sleep(self, seconds: float) -> None:
        over_s = self.now_s + seconds
        while self.now_s < over_s:
            batch = next(self._batches)
            prompt = PROMPT if int(self.iterations) % (ANSWER if self.quiet else 12) == 0 else 0
            row = (1.0, float(prompt), float(batch), 900.0 * batch, prompt * prompt / 2)
            took_s = self.slowdown * (FIXED_S + PROMPT_S * prompt + SEQUENCE_S * batch)
            for left in range(5):
                self.xy[left] += row[left] * took_s
                for right in range(left, 5):
                    self.xx[left][right] += row[left] * row[right]
            self.iterations += 1
            self.busy_s += took_s
            self.sequence_s += took_s * batch
            self.prompts += prompt
            self.generated += batch
            self.ended += prompt > 0
            self.now_s += took_s

    def page(self, _: str) -> str:
        return "\n".join(self._lines()) + "\n"

    def _lines(self) -> Iterator[str]:
        label = 'model="m"'
        for outcome in ("ok", "refused", "expired", "cancelled", "failed"):
            answered = self.ended if outcome == "ok" else 0
            yield f'headroom_requests_total{{{label},outcome="{outcome}"}} {answered}'
        yield f"headroom_requests_received_total{{{label}}} {self.ended}"
        for gauge in ("waiting", "running"):
            yield f"headroom_requests_{gauge}{{{label}}} 0"
        ended, batches = float(self.ended), float(self.iterations)
        for name, total, count in (
            ("headroom_request_duration_seconds", 9.0 * ended, ended),
            ("headroom_time_to_first_token_seconds", 0.2 * ended, ended),
            ("headroom_time_per_output_token_seconds", 0.06 * ended, ended),
            ("headroom_prompt_tokens", PROMPT * ended, ended),
            ("headroom_answer_tokens", ANSWER * ended, ended),
            ("headroom_execution_duration_seconds", self.busy_s, batches),
            ("headroom_batch_size", self.generated, batches),
        ):
            for bound in ("1000", "+Inf"):
                yield f'{name}_bucket{{{label},le="{bound}"}} {count}'
            yield f"{name}_sum{{{label}}} {total}"
            yield f"{name}_count{{{label}}} {count}"
        yield f"headroom_max_batch_size{{{label}}} 64"
        yield f"headroom_max_iteration_tokens{{{label}}} 1024"
        if self.silent:
            return
        yield f"headroom_iterations_total{{{label}}} {self.iterations}"
        yield f"headroom_device_busy_seconds_total{{{label}}} {self.busy_s}"
        for kind, value in (("computed", self.prompts), ("generated", self.generated)):
            yield f'headroom_tokens_total{{{label},kind="{kind}"}} {value}'
        names = ("1", "P", "D", "KV", "X")
        for left, row in enumerate(names):
            yield f'headroom_iteration_cost_xy_total{{{label},row="{row}"}} {self.xy[left]}'
            for right in range(left, 5):
                labels = f'{label},row="{row}",column="{names[right]}"'
                yield f"headroom_iteration_cost_xx_total{{{labels}}} {self.xx[left][right]}"


class VllmReplica(Replica):
    """Pages of vLLM, which state no limit of sequences."""

    def _lines(self) -> Iterator[str]:
        label = 'engine="0",model_name="m"'
        ended, iterations = float(self.ended), float(self.iterations)
        for name, value in (
            ("num_requests_waiting", 0.0),
            ("num_requests_running", 0.0),
            ("num_preemptions_total", 0.0),
            ("kv_cache_usage_perc", 0.1),
            ("prompt_tokens_cached_total", 0.0),
            ("generation_tokens_total", self.generated),
            ("iteration_tokens_total_count", iterations),
        ):
            yield f"vllm:{name}{{{label}}} {value}"
        yield f'vllm:prompt_tokens_by_source_total{{{label},source="local_compute"}} {self.prompts}'
        yield f'vllm:request_success_total{{{label},finished_reason="length"}} {ended}'
        yield f"vllm:request_inference_time_seconds_sum{{{label}}} {9.0 * ended}"
        for name, total, count in (
            ("e2e_request_latency_seconds", 9.0 * ended, ended),
            ("time_to_first_token_seconds", 0.2 * ended, ended),
            ("request_time_per_output_token_seconds", 0.06 * ended, ended),
            ("request_prompt_tokens", PROMPT * ended, ended),
            ("request_generation_tokens", ANSWER * ended, ended),
            ("inter_token_latency_seconds", self.sequence_s, self.generated),
        ):
            for bound in ("1000.0", "+Inf"):
                yield f'vllm:{name}_bucket{{{label},le="{bound}"}} {count}'
            yield f"vllm:{name}_sum{{{label}}} {total}"
            yield f"vllm:{name}_count{{{label}}} {count}"
