"""The real vLLM, on the CPU, behind the server's front."""

from __future__ import annotations

import asyncio
import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import pytest

from generation_peers.processes import ONE_THREAD, last_lines, started, wait_ready
from headroom_server.repository.random_llama import LlamaSize, write_random_llama
from results import ROOT
from slow.vllm_environment import python_with_vllm

pytestmark = [pytest.mark.clock, pytest.mark.timeout(900)]

SIZE = LlamaSize(hidden_size=256, layers=4, intermediate_size=704, context_tokens=1024)
ARGUMENTS = (
    "--dtype float32 --enforce-eager --max-model-len 1024 --max-num-seqs 8 --block-size 32 "
    "--num-gpu-blocks-override 256"
)
VARIABLES = {
    **ONE_THREAD,
    "PYTHONPATH": str(ROOT / "model_server"),
    "HF_HUB_OFFLINE": "1",
    "VLLM_NO_USAGE_STATS": "1",
    "DO_NOT_TRACK": "1",
    "VLLM_CPU_KVCACHE_SPACE": "1",
    "VLLM_CPU_OMP_THREADS_BIND": "nobind",
}
JSON_FORM = {
    "type": "json_schema",
    "json_schema": {
        "name": "one",
        "schema": {
            "type": "object",
            "properties": {"a": {"type": "integer", "minimum": 0, "maximum": 99}},
            "required": ["a"],
            "additionalProperties": False,
        },
    },
}


@dataclass(frozen=True)
class Served:
    """A server that is ready."""

    url: str
    process: subprocess.Popen[str]
    log: Path

    def complete(self, **body: object) -> Any:
        asked = {"model": "m", "prompt": "once upon a time", "temperature": 0, **body}
        answer = httpx.post(f"{self.url}/v1/completions", json=asked, timeout=120)
        assert answer.status_code == 200, (answer.text, last_lines(self.log))
        return answer.json()

    def metrics(self) -> dict[str, float]:
        lines = httpx.get(f"{self.url}/metrics", timeout=30).text.splitlines()
        rows = (line.rsplit(" ", 1) for line in lines if not line.startswith("#"))
        return {name.replace('model="m",', ""): float(value) for name, value in rows}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("models") / "llama"
    write_random_llama(path, SIZE)
    return path


def serve(python: str, folder: Path, log: Path, *flags: str) -> Iterator[Served]:
    words = [
        *(python, "-m", "headroom_server", "--model-uri", f"file://{folder}", *flags),
        *("--model-name", "m", "--host", "127.0.0.1", "--port", "0"),
        *("--warmup-max-latency-s", "30", "--drain-delay-s", "0", "--drain-grace-s", "60"),
    ]
    with started(words, VARIABLES, log) as process:
        url = f"http://127.0.0.1:{port_of(process, log)}"
        wait_ready(process, f"{url}/v2/health/ready", log)
        yield Served(url, process, log)


def port_of(process: subprocess.Popen[str], log: Path) -> str:
    """Read the port from the log; it is written before the model is loaded."""
    for _ in range(1200):
        found = re.search(r"listening on 127\.0\.0\.1, port (\d+)", log.read_text(errors="replace"))
        if found is not None:
            return found[1]
        try:
            process.wait(0.1)
        except subprocess.TimeoutExpired:
            continue
        break
    raise AssertionError(last_lines(log))


@pytest.fixture(scope="module")
def vllm(folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    log = tmp_path_factory.mktemp("logs") / "vllm.log"
    flags = ("--engine", "vllm", "--vllm-args", ARGUMENTS)
    yield from serve(str(python_with_vllm()), folder, log, *flags)


def test_greedy_tokens_are_those_of_our_engine(vllm: Served, folder: Path, tmp_path: Path) -> None:
    prompts = ["once upon a time", "def main():", "a b c d e f g"]
    theirs = [vllm.complete(prompt=one, max_tokens=16, logprobs=0) for one in prompts]
    for ours in serve(sys.executable, folder, tmp_path / "log"):
        own = [ours.complete(prompt=one, max_tokens=16, logprobs=0) for one in prompts]

    assert list(map(tokens, theirs)) == list(map(tokens, own))


def tokens(answer: Any) -> Sequence[str]:
    found: Sequence[str] = answer["choices"][0]["logprobs"]["tokens"]
    return found


def test_a_schema_a_choice_and_a_minimum_hold(vllm: Served) -> None:
    body = {"model": "m", "messages": [{"role": "user", "content": "hi"}], "max_tokens": 60}
    answer = httpx.post(
        f"{vllm.url}/v1/chat/completions", json=body | {"response_format": JSON_FORM}, timeout=120
    )
    chosen = vllm.complete(structured_outputs={"choice": ["yes", "no"]}, max_tokens=8)
    long = vllm.complete(min_tokens=20, max_tokens=24)

    assert set(json.loads(answer.json()["choices"][0]["message"]["content"])) == {"a"}
    assert chosen["choices"][0]["text"] in ("yes", "no")
    assert long["usage"]["completion_tokens"] >= 20


async def _streams(url: str, count: int, leave: Sequence[int], most: int) -> list[str]:
    async with httpx.AsyncClient(base_url=url, timeout=240) as http:

        async def one(number: int) -> str:
            body = {
                "model": "m",
                "prompt": f"{number} words",
                "max_tokens": most,
                "ignore_eos": True,
                "stream": True,
            }
            got = ""
            async with http.stream("POST", "/v1/completions", json=body) as answer:
                async for part in answer.aiter_text():
                    got += part
                    if number in leave:
                        return "left"
            return got

        return await asyncio.gather(*map(one, range(count)))


def test_clients_that_leave_harm_no_other_and_leave_nothing(vllm: Served) -> None:
    leave = range(0, 40, 4)
    answers = asyncio.run(_streams(vllm.url, 40, leave, 40))

    assert all(one.endswith("data: [DONE]\n\n") for one in answers if one != "left")
    assert answers.count("left") == len(leave)
    vllm.complete(max_tokens=2)  # after it, vLLM has reported what is left
    found = vllm.metrics()
    assert found['headroom_kv_blocks{state="used"}'] == 0
    assert found['headroom_requests_total{outcome="cancelled"}'] == len(leave)
    assert found['headroom_iteration_cost_xx_total{row="1",column="P"}'] > 0


def test_a_hopeless_deadline_is_refused_and_counted(vllm: Served) -> None:
    async def load() -> int:
        async with httpx.AsyncClient(base_url=vllm.url, timeout=240) as http:
            body = {"model": "m", "prompt": "x " * 400, "max_tokens": 200, "ignore_eos": True}
            busy = [asyncio.create_task(http.post("/v1/completions", json=body)) for _ in range(24)]
            for _ in range(400):
                seen = await asyncio.to_thread(vllm.metrics)
                if seen['headroom_requests_waiting{model="m"}'] >= 8:
                    break
                await asyncio.sleep(0.02)
            headers = {"x-first-token-timeout": "0.05"}
            refused = await http.post("/v1/completions", json=body, headers=headers)
            await asyncio.gather(*busy)
            return refused.status_code

    assert asyncio.run(load()) == 429
    assert vllm.metrics()['headroom_requests_refused_total{reason="deadline"}'] == 1


def test_streams_end_as_they_should_after_sigterm(vllm: Served) -> None:
    async def run() -> list[str]:
        task = asyncio.create_task(_streams(vllm.url, 8, (), 100))
        for _ in range(400):
            if vllm.metrics()['headroom_requests_running{model="m"}'] == 8:
                break
            await asyncio.sleep(0.05)
        os.kill(vllm.process.pid, signal.SIGTERM)
        return await task

    answers = asyncio.run(run())

    assert all(one.endswith("data: [DONE]\n\n") for one in answers)
    assert vllm.process.wait(60) == 0, last_lines(vllm.log)
