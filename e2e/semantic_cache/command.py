"""`python -m bench semantic-cache`: hit rate, precision and speed of the semantic cache.

The questions are Headroom's own (`questions.py`). The embedding model is a folder of
sentence-transformers; the model server serves it and the cache's own client asks it. Without one
only look-ups are measured.
"""

from __future__ import annotations

import argparse
import asyncio
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import lru_cache, partial
from pathlib import Path

from rich.console import Console

from bench.figures import Figure, all_hold, at_least, at_most, shown, table
from cluster.progress import OnConsole
from free_ports import free_port
from generation_peers.processes import started, wait_ready
from headroom_server.caching.similarity import Vector, unit
from headroom_server.generation.text.tokenizer_folder import load_tokenizer
from headroom_server.runtime.embedding import RemoteEmbedder
from results import ROOT
from semantic_cache.measuring import hits, look_up
from semantic_cache.questions import INTENTS

ENTRIES, DIMENSION = 100_000, 384
THRESHOLDS = (0.80, 0.85, 0.90, 0.95)
USED = 0.95
"""The server's default."""
LEAST_PRECISION, MOST_LOOK_UP_S = 0.97, 0.002
MODEL_CLASS = "semantic_cache.sentence_model:SentenceModel"


def main(argv: Sequence[str]) -> int:
    """Measure, print the table, and return the exit status."""
    given = _parser().parse_args(argv)
    console = Console(highlight=False, width=None if sys.stdout.isatty() else 120)
    progress = OnConsole(console)
    with progress.step(f"Looking up among {ENTRIES} entries"):
        found = look_up(ENTRIES, DIMENSION, USED)
    figures = [
        at_most("look-up, median", 1000 * found.median_s, 1000 * MOST_LOOK_UP_S, " ms", 2),
        shown("look-up, p95; CPU", f"{1000 * found.p95_s:.2f}; {1000 * found.cpu_s:.2f} ms"),
    ]
    if given.model is not None:
        with progress.step("Serving the embedding model"), embedder(given.model) as embed:
            figures += _precision(embed)
    console.print(table("Semantic cache", figures))
    return 0 if all_hold(figures) else 1


def _precision(embed: Callable[[str], Vector]) -> Sequence[Figure]:
    figures = []
    for threshold in THRESHOLDS:
        found = hits(INTENTS, embed, threshold)
        said = f"{found.right} right, {found.wrong} wrong"
        rate = f"{100 * found.hit_rate:.0f} %"
        figures.append(shown(f"cosine {threshold:.2f}: hit rate; hits", f"{rate}; {said}"))
        if threshold == USED:
            name = f"precision at cosine {threshold:.2f}"
            figures.append(at_least(name, 100 * found.precision, 100 * LEAST_PRECISION, " %", 1))
    return figures


@contextmanager
def embedder(folder: Path) -> Iterator[Callable[[str], Vector]]:
    """Serve the model, and embed with the cache's client."""
    port = free_port()
    words = [
        *(sys.executable, "-m", "headroom_server", "--host", "127.0.0.1", "--port", str(port)),
        *("--model-class", MODEL_CLASS, "--model-name", "embed"),
        *("--model-uri", f"file://{folder}", "--max-batch-size", "4"),
        *("--warmup-max-latency-s", "10"),
    ]
    url = f"http://127.0.0.1:{port}"
    variables = {"PYTHONPATH": f"{ROOT / 'model_server'}:{ROOT / 'e2e'}", "HF_HUB_OFFLINE": "1"}
    with tempfile.TemporaryDirectory() as name:
        log = Path(name) / "log"
        with started(words, variables, log) as process:
            wait_ready(process, f"{url}/v2/health/ready", log)
            tokenizer = load_tokenizer(folder)
            encode = partial(tokenizer.encode, special=True)
            remote = RemoteEmbedder(f"{url}/v1/models/embed:predict", encode)

            @lru_cache(maxsize=1024)
            def embed(text: str) -> Vector:
                vector = unit(asyncio.run(_embedding(remote, text)))
                assert vector is not None, "an embedding is not zero"
                return vector

            try:
                yield embed
            finally:
                remote.close()


async def _embedding(remote: RemoteEmbedder, text: str) -> Sequence[float]:
    return await remote(text)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="bench semantic-cache", description=__doc__, allow_abbrev=False
    )
    parser.add_argument("--model", type=Path, metavar="FOLDER", help="The embedding model.")
    return parser
