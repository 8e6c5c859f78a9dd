"""Small models of random weights in Hugging Face folders, and a loop that runs an executor."""

from __future__ import annotations

import random
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch

from headroom_server.generation.values import Chunk, GenerationRequest, Iteration, Sampling
from headroom_server.torch_generation.executor import TorchExecutor
from headroom_server.torch_generation.loading import ExecutorOptions
from support.generation_chunks import Grown

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    import transformers

GREEDY = Sampling(temperature=0.0)
CONTEXT = 256
OPTIONS = ExecutorOptions(dtype="float32", kv_bytes=8 << 20, max_sequences=16, block_tokens=8)
SIZES: dict[str, Any] = {
    "vocab_size": 199,
    "hidden_size": 48,
    "intermediate_size": 80,
    "num_hidden_layers": 2,
    "num_attention_heads": 6,
    "num_key_value_heads": 2,
    "max_position_embeddings": CONTEXT,
    "initializer_range": 0.3,
    "bos_token_id": None,
    "eos_token_id": None,
    "pad_token_id": 0,
}
LLAMA3 = {
    "rope_type": "llama3",
    "rope_theta": 10_000.0,
    "factor": 8.0,
    "low_freq_factor": 1.0,
    "high_freq_factor": 4.0,
    "original_max_position_embeddings": 64,
}
YARN = {
    "rope_type": "yarn",
    "rope_theta": 10_000.0,
    "factor": 4.0,
    "original_max_position_embeddings": 64,
}
LINEAR = {"rope_type": "linear", "rope_theta": 10_000.0, "factor": 2.0}
MODELS: dict[str, tuple[str, dict[str, Any]]] = {
    "llama": ("Llama", {}),
    "llama-tied": ("Llama", {"tie_word_embeddings": True, "attention_bias": True}),
    "llama3": ("Llama", {"rope_parameters": LLAMA3}),
    "llama3-trained-elsewhere": (
        "Llama",
        {"rope_parameters": LLAMA3, "original_max_position_embeddings": 32},
    ),
    "llama-linear": ("Llama", {"rope_parameters": LINEAR}),
    "llama-yarn": ("Llama", {"rope_parameters": YARN}),
    "qwen2": ("Qwen2", {}),
    "qwen2-window": (
        "Qwen2",
        {"use_sliding_window": True, "sliding_window": 9, "max_window_layers": 1},
    ),
    "qwen3": ("Qwen3", {"head_dim": 16}),
    "qwen3-odd-heads": (
        "Qwen3",
        {
            "head_dim": 12,
            "num_attention_heads": 9,
            "num_key_value_heads": 3,
            "attention_bias": True,
            "rope_parameters": YARN | {"mscale": 1.0, "mscale_all_dim": 0.5, "truncate": False},
        },
    ),
    "mistral": ("Mistral", {"sliding_window": 11, "head_dim": 8}),
}


def make_model(folder: Path, name: str, *, seed: int = 0, **sizes: Any) -> Any:
    """Save a random model; return transformers' own, to compare with."""
    family, fields = MODELS[name]
    torch.manual_seed(seed)
    config = getattr(transformers, f"{family}Config")(**{**SIZES, **fields, **sizes})
    model = getattr(transformers, f"{family}ForCausalLM")(config).eval()
    for parameter_name, parameter in model.named_parameters():
        if parameter_name.endswith(("bias", "norm.weight")):
            torch.nn.init.normal_(parameter, 0.6, 0.3)
    model.save_pretrained(folder, max_shard_size=sizes.get("shard", "5GB"))
    return model


def expected_tokens(model: Any, prompt: Sequence[int], count: int) -> list[int]:
    """Return what transformers' `generate` answers, greedily."""
    ids = torch.tensor([list(prompt)])
    with torch.inference_mode():
        found = model.generate(
            ids,
            attention_mask=torch.ones_like(ids),
            max_new_tokens=count,
            min_new_tokens=count,
            do_sample=False,
        )
    answer: list[int] = found[0, len(prompt) :].tolist()
    return answer


def prompt_of(length: int, seed: int = 0) -> tuple[int, ...]:
    """Return random tokens."""
    chance = random.Random(seed)
    return tuple(chance.randrange(1, 199) for _ in range(length))


def request_of(
    prompt: Sequence[int], count: int, key: int = 1, sampling: Sampling = GREEDY
) -> GenerationRequest:
    """Return a request."""
    return GenerationRequest(key=key, prompt=tuple(prompt), max_tokens=count, sampling=sampling)


class Running:
    """One sequence that a test's loop runs."""

    def __init__(self, request: GenerationRequest, blocks: list[int]) -> None:
        self.sequence = Grown(request, list(request.prompt))
        self.blocks = blocks
        self.computed = 0

    @property
    def answer(self) -> list[int]:
        return self.sequence.tokens[len(self.sequence.request.prompt) :]

    @property
    def ended(self) -> bool:
        return len(self.answer) >= self.sequence.request.max_tokens


class Loop:
    """Runs sequences on an executor with block tables in random order."""

    def __init__(self, executor: TorchExecutor, chunk_tokens: int = 1000) -> None:
        self.executor = executor
        self.limits = executor.load()
        self.chunk_tokens = chunk_tokens
        self.free = list(range(self.limits.blocks))
        random.Random(1).shuffle(self.free)
        self.running: list[Running] = []
        self.iterations = 0

    def add(self, request: GenerationRequest) -> Running:
        count = -(-(len(request.prompt) + request.max_tokens) // self.limits.block_tokens)
        running = Running(request, [self.free.pop() for _ in range(count)])
        self.running.append(running)
        return running

    def chunk(self, one: Running, drafts: Sequence[int] = ()) -> Chunk:
        tokens = one.sequence.tokens
        end = min(len(tokens), one.computed + self.chunk_tokens)
        computed = (*tokens[one.computed : end], *(drafts if end == len(tokens) else ()))
        return Chunk(
            one.sequence,
            one.computed,
            tuple(computed),
            one.blocks,
            end == len(tokens),
            len(drafts) if end == len(tokens) else 0,
        )

    def step(self) -> None:
        active = [one for one in self.running if not one.ended]
        self.advance(active, [()] * len(active))

    def advance(self, active: Sequence[Running], drafts: Sequence[Sequence[int]]) -> None:
        chunks = [self.chunk(one, more) for one, more in zip(active, drafts, strict=True)]
        result = self.executor.execute(Iteration(tuple(chunks)))
        self.iterations += 1
        for one, chunk, sampled in zip(active, chunks, result.sampled, strict=True):
            one.computed = chunk.start + len(chunk.tokens)
            if sampled:
                one.computed = len(one.sequence.tokens) + len(sampled) - 1
            one.sequence.tokens += [token.token for token in sampled]

    def speculate(self, count: int, *requests: GenerationRequest) -> list[list[int]]:
        """Run with the draft model's proposals."""
        added = [self.add(request) for request in requests]
        while active := [one for one in added if not one.ended]:
            wanted = [one.sequence for one in active]
            drafts = self.executor.draft(wanted, count)
            left = [one.sequence.request.max_tokens - len(one.answer) - 1 for one in active]
            self.advance(active, [more[:most] for more, most in zip(drafts, left, strict=True)])
        return [one.answer for one in added]

    def run(self, *requests: GenerationRequest) -> list[list[int]]:
        added = [self.add(request) for request in requests]
        while not all(one.ended for one in added):
            self.step()
        return [one.answer for one in added]
