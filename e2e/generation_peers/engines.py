"""Starts each engine for a folder: one number format, one compute thread, equal seats."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from results import ROOT

SCRIPTS = Path(__file__).parent / "scripts"
SEATS = 16
VLLM_BLOCK_TOKENS = 32
"""vLLM's attention on the CPU takes multiples of 32."""
VLLM_VARIABLES = {
    "HF_HUB_OFFLINE": "1",
    "TRANSFORMERS_OFFLINE": "1",
    "VLLM_NO_USAGE_STATS": "1",
    "DO_NOT_TRACK": "1",
    "VLLM_CPU_KVCACHE_SPACE": "2",
    "VLLM_CPU_OMP_THREADS_BIND": "nobind",
}


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
    """Setup that all engines share."""

    folder: Path
    """The model's folder; a GGUF file is written next to it."""
    context_tokens: int
    python: str = sys.executable
    seats: int = SEATS
    gpu: bool = False
    """vLLM with its defaults on the GPU; the others stay on the CPU."""


def ours(setup: Setup, port: int) -> Engine:
    """Headroom's server with its own engine."""
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
    """VLLM's own server."""
    program = str(Path(python).parent / "vllm")
    return Engine(
        name="vllm",
        title="vLLM on the GPU" if setup.gpu else "vLLM on the CPU",
        command=[
            *(program, "serve", str(setup.folder), "--host", "127.0.0.1", "--port", str(port)),
            *("--served-model-name", "peer", "--no-enable-log-requests"),
            *vllm_arguments(setup),
        ],
        variables=VLLM_VARIABLES,
    )


def vllm_behind_our_front(setup: Setup, python: str, port: int) -> Engine:
    """Our server, which generates with vLLM in its process, with the same arguments."""
    return Engine(
        name="front",
        title="vLLM behind Headroom's front",
        command=[
            *(python, "-m", "headroom_server", "--model-uri", f"file://{setup.folder}"),
            *("--model-name", "peer", "--host", "127.0.0.1", "--port", str(port)),
            *("--engine", "vllm", "--vllm-args", shlex.join(vllm_arguments(setup))),
            *("--warmup-max-latency-s", "30", "--warmup-timeout-s", "500"),
        ],
        variables={**VLLM_VARIABLES, "PYTHONPATH": str(ROOT / "model_server")},
        ready_path="/v2/health/ready",
    )


def vllm_arguments(setup: Setup) -> Sequence[str]:
    """Return the arguments of `vllm serve` that decide how fast it generates."""
    arguments = [
        *("--max-model-len", str(setup.context_tokens), "--max-num-seqs", str(setup.seats)),
        "--no-enable-prefix-caching",
    ]
    if setup.gpu:
        return [*arguments, "--dtype", "bfloat16", "--gpu-memory-utilization", "0.4"]
    blocks = setup.seats * -(-setup.context_tokens // VLLM_BLOCK_TOKENS)
    cpu = ("--dtype", "float32", "--enforce-eager", "--block-size", str(VLLM_BLOCK_TOKENS))
    return [*arguments, *cpu, "--num-gpu-blocks-override", str(blocks)]
