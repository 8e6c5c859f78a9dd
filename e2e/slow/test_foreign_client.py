"""Third-party clients, unchanged: aiperf and guidellm measure the server, LangChain talks to it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import httpx
import pytest

from free_ports import free_port
from generation_peers.processes import last_lines, started, wait_ready
from headroom_server.repository.random_llama import write_random_llama
from serverbench.installing import ENVIRONMENTS, install

pytestmark = [pytest.mark.clock, pytest.mark.timeout(900)]

REQUESTS, TOKENS = 40, 30
SETTINGS = {
    "HEADROOM_ENGINE": "generation-emulated",
    "HEADROOM_HOST": "127.0.0.1",
    "HEADROOM_MODEL_NAME": "writer",
    "HEADROOM_EMULATED_LOAD_S": "0",
    "HEADROOM_EMULATED_FIXED_COST_S": "0.03",
    "HEADROOM_EMULATED_PER_ITEM_COST_S": "0.003",
    "HEADROOM_WARMUP_MAX_LATENCY_S": "30",
}
LANGCHAIN_CALLS = Path(__file__).with_name("langchain_calls.py")
COMMIT = "0" * 40
"""Commit of the tokenizer, which it looks up in the cache of Hugging Face's library only."""


@pytest.fixture
def url(tmp_path: Path) -> Iterator[str]:
    """The server with an emulated model."""
    port, log = free_port(), tmp_path / "server.log"
    words = [sys.executable, "-m", "headroom_server", "--port", str(port)]
    with started(words, SETTINGS, log) as process:
        wait_ready(process, f"http://127.0.0.1:{port}/v2/health/ready", log)
        yield f"http://127.0.0.1:{port}"


def test_aiperf_measures_what_the_server_reports(url: str, tmp_path: Path) -> None:
    install("aiperf")
    seen = profiled(url, tmp_path)
    page = metrics(url)

    assert seen["request_count"]["avg"] == REQUESTS
    assert seen["output_sequence_length"]["sum"] == REQUESTS * TOKENS
    assert page['headroom_requests_total{model="writer",outcome="ok"}'] == REQUESTS
    # a client's time has its own delays too: it is no shorter than the server's
    first_ms = 1000.0 * mean(page, "headroom_time_to_first_token_seconds")
    assert seen["time_to_first_token"]["avg"] >= 0.95 * first_ms
    token_ms = 1000.0 * mean(page, "headroom_time_per_output_token_seconds")
    assert seen["inter_token_latency"]["avg"] == pytest.approx(token_ms, rel=0.2, abs=10.0)


def test_guidellm_gets_every_answer_whole(url: str, tmp_path: Path) -> None:
    install("guidellm")
    write_random_llama(tmp_path / "tiny")
    report = tmp_path / "report.json"
    words = [
        *(str(ENVIRONMENTS / "guidellm" / "bin" / "guidellm"), "run", "--disable-console"),
        *(
            "--backend",
            f"kind=openai_http,target={url},model=writer,request_format=/v1/completions",
        ),
        *(
            "--profile",
            "kind=constant,rate=2",
            "--constraint",
            f"kind=max_requests,count={REQUESTS}",
        ),
        *("--tokenizer", f"kind=huggingface_auto,model={tmp_path / 'tiny'}"),
        *("--data", f"kind=synthetic_text,prompt_tokens=100,output_tokens={TOKENS}"),
        *("--output", f"kind=json,path={report}"),
    ]
    ran(words, tmp_path)
    (found,) = json.loads(report.read_text())["benchmarks"]
    page = metrics(url)

    assert found["metrics"]["request_totals"]["successful"] == REQUESTS
    assert found["metrics"]["output_token_count"]["successful"]["total_sum"] == REQUESTS * TOKENS
    assert page['headroom_requests_total{model="writer",outcome="ok"}'] >= REQUESTS
    first_ms = 1000.0 * mean(page, "headroom_time_to_first_token_seconds")
    assert found["metrics"]["time_to_first_token_ms"]["successful"]["mean"] >= 0.95 * first_ms


def test_langchain_chats_streams_and_raises(url: str, tmp_path: Path) -> None:
    install("langchain")
    python = ENVIRONMENTS / "langchain" / "bin" / "python"
    seen = json.loads(ran([str(python), str(LANGCHAIN_CALLS), url], tmp_path))

    assert (len(seen["whole"]), seen["finish"]) == (20, "length")
    assert seen["streamed"] == seen["whole"]
    for usage in (seen["usage"], seen["streamed_usage"]):
        assert usage["output_tokens"] == 20
        assert usage["total_tokens"] == usage["input_tokens"] + 20
    assert [len(one) for one in seen["batch"]] == [20] * 3
    assert seen["text_streamed"] == seen["text"]
    assert seen["error"].endswith("NotFoundError")


def ran(words: Sequence[str], folder: Path) -> str:
    """Run a client without a network beyond the server, and return what it printed."""
    variables = {
        "HOME": str(folder),
        "HF_HUB_OFFLINE": "1",
        "TRANSFORMERS_OFFLINE": "1",
        "LANGSMITH_TRACING": "false",
    }
    log = folder / "client.log"
    with log.open("w") as file:
        done = subprocess.run(
            words, env={**os.environ, **variables}, stdout=subprocess.PIPE, stderr=file,
            text=True, check=False, timeout=600,
        )  # fmt: skip
    assert done.returncode == 0, last_lines(log)
    return done.stdout


def profiled(url: str, folder: Path) -> dict[str, Any]:
    """Run it, and return its report."""
    kept = folder / ".cache" / "huggingface" / "hub" / "models--local--tiny"
    (kept / "refs").mkdir(parents=True)
    (kept / "refs" / "main").write_text(COMMIT)
    (kept / "snapshots").mkdir()
    write_random_llama(kept / "snapshots" / COMMIT)
    words = [
        *(str(ENVIRONMENTS / "aiperf" / "bin" / "aiperf"), "profile", "--model", "writer"),
        *("--url", url, "--endpoint-type", "completions", "--streaming", "--ui", "none"),
        *("--tokenizer", "local/tiny", "--request-rate", "2", "--request-count", str(REQUESTS)),
        *("--synthetic-input-tokens-mean", "200", "--output-tokens-mean", str(TOKENS)),
        *("--extra-inputs", "ignore_eos:true", "--artifact-dir", str(folder / "out")),
    ]
    ran(words, folder)
    report: dict[str, Any] = json.loads((folder / "out" / "profile_export_aiperf.json").read_text())
    return report


def metrics(url: str) -> dict[str, float]:
    """Read the server's page."""
    lines = httpx.get(f"{url}/metrics", timeout=30).text.splitlines()
    rows = (line.rsplit(" ", 1) for line in lines if not line.startswith("#"))
    return {name: float(value) for name, value in rows}


def mean(page: dict[str, float], metric: str) -> float:
    """Return the mean of a histogram."""
    label = '{model="writer"}'
    return page[f"{metric}_sum{label}"] / page[f"{metric}_count{label}"]
