"""How each engine is started for a folder: float32, one compute thread, equal seats."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

SCRIPTS = Path(__file__).parent / "scripts"
SEATS = 16
VLLM_BLOCK_TOKENS = 32
"""vLLM's attention on the CPU takes multiples of 32."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Engine:
    """A server of OpenAI's completions, or a script that takes rounds on its input."""

    name: str
    title: str
    command: Sequence[str]
    variables: Mapping[str, str] = field(default_factory=dict)
    ready_path: str = "/health"
    http: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class Setup:
    """What all engines share."""

    folder: Path
    """The model's folder; a GGUF file is written next to it."""
    context_tokens: int
    python: str = sys.executable


def ours(setup: Setup, port: int) -> Engine:
    """Our server with our engine."""
    return Engine(
        name="headroom",
        title="ours",
        command=[
            *(setup.python, "-m", "headroom_server", "--model-uri", f"file://{setup.folder}"),
            *("--model-name", "peer", "--host", "127.0.0.1", "--port", str(port)),
            *("--torch-threads", "1", "--max-sequences", str(SEATS)),
            *("--prefix-cache", "false"),  # as in the others: each round has the same prompts
            *("--context-tokens", str(setup.context_tokens), "--warmup-max-latency-s", "10"),
        ],
        ready_path="/v2/health/ready",
    )


def transformers(setup: Setup, python: str) -> Engine:
    """The continuous batching of transformers, called in its process: no HTTP, no streams."""
    return Engine(
        name="transformers",
        title="transformers, continuous batching",
        command=[python, str(SCRIPTS / "transformers_rounds.py"), str(setup.folder), str(SEATS)],
        variables={"HF_HUB_OFFLINE": "1"},
        http=False,
    )


def llama(setup: Setup, python: str, port: int) -> Engine:
    """llama.cpp's server, from the wheel xllamacpp."""
    context = str(setup.context_tokens)
    return Engine(
        name="llama",
        title="llama.cpp server",
        command=[
            *(python, str(SCRIPTS / "llama_server.py"), str(setup.folder)),
            *(str(port), str(SEATS), context),
        ],
    )


def vllm(setup: Setup, python: str, port: int) -> Engine:
    """VLLM's server on the CPU."""
    program = str(Path(python).parent / "vllm")
    blocks = SEATS * -(-setup.context_tokens // VLLM_BLOCK_TOKENS)
    return Engine(
        name="vllm",
        title="vLLM on the CPU",
        command=[
            *(program, "serve", str(setup.folder), "--host", "127.0.0.1", "--port", str(port)),
            *("--served-model-name", "peer", "--dtype", "float32", "--enforce-eager"),
            *("--max-model-len", str(setup.context_tokens), "--max-num-seqs", str(SEATS)),
            *("--block-size", str(VLLM_BLOCK_TOKENS), "--num-gpu-blocks-override", str(blocks)),
            *("--no-enable-prefix-caching", "--no-enable-log-requests"),
        ],
        variables={
            "HF_HUB_OFFLINE": "1",
            "TRANSFORMERS_OFFLINE": "1",
            "VLLM_NO_USAGE_STATS": "1",
            "DO_NOT_TRACK": "1",
            "VLLM_CPU_KVCACHE_SPACE": "2",
            "VLLM_CPU_OMP_THREADS_BIND": "nobind",
        },
    )
