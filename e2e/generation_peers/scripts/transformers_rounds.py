"""`transformers_rounds.py FOLDER SEATS`: rounds of requests for transformers' continuous batching.

A line of standard input is a JSON list of [prompt, tokens]; a line of output says what it took.
"""

from __future__ import annotations

import json
import statistics
import sys
import time
from collections.abc import Sequence
from typing import Any

import torch
from transformers import AutoModelForCausalLM
from transformers.generation.configuration_utils import ContinuousBatchingConfig, GenerationConfig

NO_TOKEN = -1
PAGE_TOKENS = 256
"""Its default."""
BATCH_TOKENS = 1024


def main() -> None:
    """Load, then take rounds until the input ends."""
    torch.set_num_threads(1)
    folder, seats = sys.argv[1], int(sys.argv[2])
    model = AutoModelForCausalLM.from_pretrained(
        folder, dtype=torch.float32, attn_implementation="sdpa"
    )
    print("ready", flush=True)
    for line in sys.stdin:
        print(json.dumps(run(model, json.loads(line), seats)), flush=True)


def run(model: Any, requests: Sequence[tuple[list[int], int]], seats: int) -> dict[str, float]:
    """Generate all answers; the manager exists only meanwhile, because it polls when idle."""
    generation: Any = GenerationConfig
    manager = model.init_continuous_batching(
        generation_config=generation(do_sample=False, eos_token_id=NO_TOKEN, pad_token_id=0),
        continuous_batching_config=ContinuousBatchingConfig(
            page_size=PAGE_TOKENS,
            num_blocks=seats * -(-model.config.max_position_embeddings // PAGE_TOKENS),
            max_batch_tokens=BATCH_TOKENS,
            max_requests_per_batch=seats,
            allow_block_sharing=False,
        ),
    )
    manager.start()
    try:
        began_s, began_cpu_s = time.perf_counter(), time.process_time()
        for number, (prompt, count) in enumerate(requests):
            manager.add_request(
                prompt, request_id=str(number), max_new_tokens=count, streaming=True
            )
        first_s: dict[str, float] = {}
        tokens = ended = 0
        while ended < len(requests):
            result = manager.get_result(timeout=1.0)
            if result is None:
                continue
            if result.generated_tokens:
                first_s.setdefault(result.request_id, time.perf_counter() - began_s)
            if result.is_finished():
                if result.error:
                    raise RuntimeError(result.error)
                ended, tokens = ended + 1, tokens + len(result.generated_tokens)
        wall_s, cpu_s = time.perf_counter() - began_s, time.process_time() - began_cpu_s
    finally:
        manager.stop(block=True)
    median_s = statistics.median(first_s.values())
    return {"tokens": tokens, "wall_s": wall_s, "cpu_s": cpu_s, "first_token_s": median_s}


if __name__ == "__main__":
    main()
