"""The server as a process: start, readiness, drain under load, exit codes."""

from __future__ import annotations

import asyncio
import signal
import socket
import sys
from pathlib import Path

import aiohttp
import pytest

from support.server_process import Server, serving

pytestmark = pytest.mark.clock


async def client(server: Server) -> int:
    """Keep one connection busy until a response closes it; return the number of responses.

    A Service would then route to another replica. Anything but a correct response raises.
    """
    answered = 0
    async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=1)) as http:
        while True:
            async with http.post(
                f"{server.url}/v1/models/m:predict", json={"instances": [[1, 2, 3, 4]]}
            ) as answer:
                assert (await answer.json()) == {"predictions": [10.0]}
                answered += 1
                if answer.headers.get("connection") == "close":
                    return answered


async def test_drain_under_load_loses_no_request() -> None:
    async with serving(DRAIN_DELAY_S=1) as server:
        await server.ready()
        clients = [asyncio.create_task(client(server)) for _ in range(12)]
        async with aiohttp.ClientSession() as idle:
            async with idle.get(f"{server.url}/v2/health/live") as kept_open:
                await kept_open.read()
            await asyncio.sleep(0.3)
            assert not any(task.done() for task in clients)
            server.process.send_signal(signal.SIGTERM)
            status = 200
            while status == 200:  # until the signal is handled
                async with idle.get(f"{server.url}/v2/health/ready") as answer:
                    status, said = answer.status, await answer.json()
            assert (status, said["phase"]) == (503, "draining")
            assert answer.headers["connection"] == "close"
        # endpoints are not updated yet: one more request arrives over a new connection
        clients.append(asyncio.create_task(client(server)))
        answers = await asyncio.wait_for(asyncio.gather(*clients), 20)
        assert all(answered > 1 for answered in answers[:-1])
        assert answers[-1] == 1
        assert await server.process.wait() == 0


async def test_drain_finishes_requests_longer_than_the_delay() -> None:
    async with serving(EMULATED_FIXED_COST_S=0.5, MAX_BATCH_SIZE=1, DRAIN_DELAY_S=0) as server:
        await server.ready()
        async with aiohttp.ClientSession() as http:
            posts = [
                asyncio.create_task(
                    http.post(
                        f"{server.url}/v1/models/m:predict", json={"instances": [[1, 1, 1, 1]]}
                    )
                )
                for _ in range(2)
            ]
            await server.shows("requests_received_total", 2)
            server.process.send_signal(signal.SIGTERM)
            for post in posts:
                async with await post as answer:
                    assert await answer.json() == {"predictions": [4.0]}
        assert await server.process.wait() == 0


async def test_drain_grace_end_answers_the_rest_with_an_error() -> None:
    async with serving(
        EMULATED_FIXED_COST_S=0.9, MAX_BATCH_SIZE=1, DRAIN_DELAY_S=0, DRAIN_GRACE_S=0.1
    ) as server:
        await server.ready()
        async with aiohttp.ClientSession() as http:
            post = asyncio.create_task(
                http.post(f"{server.url}/v1/models/m:predict", json={"instances": [[1, 1, 1, 1]]})
            )
            await server.shows("requests_received_total", 1)
            server.process.send_signal(signal.SIGTERM)
            async with await post as answer:
                assert answer.status == 503
                assert "stopped before it could answer" in await answer.text()
        assert await server.process.wait() == 1


async def test_connection_past_its_age_is_closed_after_a_response() -> None:
    async with serving(CONNECTION_MAX_AGE_S=0.2) as server:
        await server.ready()
        async with aiohttp.ClientSession() as http:
            closings = []
            for _ in range(2):
                async with http.get(f"{server.url}/v2/health/live") as answer:
                    closings.append(answer.headers.get("connection"))
                    await answer.read()
                await asyncio.sleep(0.3)
        assert closings == [None, "close"]


async def test_overloaded_replica_closes_connections() -> None:
    async with serving(
        EMULATED_FIXED_COST_S=0.2, EMULATED_PER_ITEM_COST_S=0, MAX_BATCH_SIZE=2, MAX_WAITING=40
    ) as server:
        await server.ready()
        async with aiohttp.ClientSession() as http:

            async def ask() -> str | None:
                body = {"instances": [[1, 1, 1, 1]]}
                async with http.post(f"{server.url}/v1/models/m:predict", json=body) as answer:
                    await answer.read()
                    return answer.headers.get("connection")

            closings = await asyncio.gather(*(ask() for _ in range(12)))
        # Two leave per batch; while more than four wait, each response closes its connection.
        assert closings.count("close") in range(4, 9)


async def test_disconnected_client_frees_its_place() -> None:
    async with serving(EMULATED_FIXED_COST_S=0.5, MAX_BATCH_SIZE=1) as server:
        await server.ready()
        async with aiohttp.ClientSession() as http:
            body = {"instances": [[1, 1, 1, 1]]}
            for number in range(3):
                asked = asyncio.create_task(
                    http.post(f"{server.url}/v1/models/m:predict", json=body)
                )
                await server.shows("requests_received_total", number + 1)
                asked.cancel()
            await server.shows("requests_total", 3, outcome="cancelled")
            await server.shows("requests_waiting", 0)


async def test_model_that_never_becomes_warm_ends_the_process() -> None:
    async with serving(
        EMULATED_FIXED_COST_S=0.02, WARMUP_MAX_LATENCY_S=0.001, WARMUP_TIMEOUT_S=2
    ) as server:
        _, log = await asyncio.wait_for(server.process.communicate(), 20)
        assert server.process.returncode == 1
    assert b"above HEADROOM_WARMUP_MAX_LATENCY_S=0.001 s" in log
    assert b" ready after" not in log


async def test_signal_while_loading_ends_the_process_at_once() -> None:
    async with serving(EMULATED_LOAD_S=30) as server, aiohttp.ClientSession() as http:
        async with asyncio.timeout(20):
            while True:
                try:
                    async with http.get(f"{server.url}/v2/health/ready") as answer:
                        assert (answer.status, (await answer.json())["phase"]) == (503, "load")
                    break
                except aiohttp.ClientConnectorError:
                    await asyncio.sleep(0.02)
        async with http.post(f"{server.url}/v1/models/m:predict", json={}) as answer:
            assert (answer.status, answer.headers["retry-after"]) == (503, "1")
        server.process.send_signal(signal.SIGTERM)
        assert await asyncio.wait_for(server.process.wait(), 5) == 0


async def test_signal_before_imports_ends_the_process_with_0() -> None:
    async with serving() as server:
        assert server.process.stdin is None
        while not handles_sigterm(server.process.pid):  # noqa: ASYNC110 - another process
            await asyncio.sleep(0.002)
        server.process.send_signal(signal.SIGTERM)
        assert await asyncio.wait_for(server.process.wait(), 20) == 0


def handles_sigterm(pid: int) -> bool:
    status = Path(f"/proc/{pid}/status").read_text()
    caught = int(status.partition("SigCgt:")[2].split()[0], 16)
    return bool(caught >> (signal.SIGTERM - 1) & 1)


async def test_hanging_load_ends_the_process_after_the_warm_up_timeout() -> None:
    async with serving(EMULATED_LOAD_S=60, WARMUP_TIMEOUT_S=0.1) as server:
        _, log = await asyncio.wait_for(server.process.communicate(), 20)
        assert server.process.returncode == 1
    assert b"the model did not become warm within HEADROOM_WARMUP_TIMEOUT_S=0.1 s" in log


async def test_port_in_use_is_reported() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        async with serving(PORT=port) as server:
            _, log = await asyncio.wait_for(server.process.communicate(), 20)
            assert server.process.returncode == 2
    assert f"HEADROOM_PORT={port}: Address already in use".encode() in log
    assert b"Traceback" not in log


@pytest.mark.parametrize("given", [{"FEATURE_CACHE_BYTES": 1}, {"SEMANTIC_CACHE_URL": "http://a"}])
async def test_cache_without_effect_is_refused_at_the_start(given: dict[str, object]) -> None:
    async with serving(**given) as server:
        _, log = await asyncio.wait_for(server.process.communicate(), 20)
        assert server.process.returncode == 2
    assert b"must be unset unless" in log
    assert b"Traceback" not in log


async def test_all_wrong_settings_are_reported_with_rule_and_value() -> None:
    async with serving(PORT=70_000, ENGINE="cuda", DRAIN_GRACE_S="1m", MAX_WAITNG=3) as server:
        _, log = await asyncio.wait_for(server.process.communicate(), 20)
        assert server.process.returncode == 2
    assert b"HEADROOM_PORT: must be less than or equal to 65535; got '70000'" in log
    assert b"'generation', 'generation-emulated' or 'vllm'; got 'cuda'" in log
    assert b"HEADROOM_DRAIN_GRACE_S: must be a valid number" in log


async def test_emulated_server_imports_no_torch_and_no_numpy() -> None:
    script = (
        "import sys, headroom_server.composition\n"
        "import headroom_server.batching_composition.runners as m\n"
        "m.build_runner(m.Settings(engine='emulated'), m.ModelSource('m'))\n"
        "import headroom_server.web.application.app\n"
        "sys.exit(bool({'torch', 'numpy', 'safetensors'} & set(sys.modules)))"
    )
    process = await asyncio.create_subprocess_exec(sys.executable, "-c", script)
    assert await process.wait() == 0
