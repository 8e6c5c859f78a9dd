"""The processes of an attack: the target in its cgroup, the attackers, the probes."""

from __future__ import annotations

import asyncio
import json
import math
import signal
import sys
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager

import aiohttp

from cluster.commands import environment

Process = asyncio.subprocess.Process
ELSEWHERE = ("nice", "-n", "8")
"""Attackers have machines of their own: here they get what is left by what they attack."""
WITH_PARENT = ("setpriv", "--pdeathsig", "KILL")


@asynccontextmanager
async def running(
    *words: str,
    prefix: Sequence[str] = (),
    env: Mapping[str, str] | None = None,
    read: bool = False,
) -> AsyncIterator[Process]:
    """Run a Python module until the block ends."""
    process = await asyncio.create_subprocess_exec(
        *(*WITH_PARENT, *prefix, sys.executable, "-m", *words),
        env=environment(env),
        stdout=asyncio.subprocess.PIPE if read else asyncio.subprocess.DEVNULL,
        stderr=asyncio.subprocess.DEVNULL,
    )
    try:
        yield process
    finally:
        if process.returncode is None:
            process.kill()
        await process.communicate()


async def until_ok(url: str, within_s: float) -> None:
    """Wait until an URL is answered with 200; raise TimeoutError if that takes too long."""
    async with aiohttp.ClientSession() as http, asyncio.timeout(within_s):
        while True:
            try:
                async with http.get(url) as answer:
                    if answer.status == 200:
                        return
            except aiohttp.ClientError:
                pass
            await asyncio.sleep(0.05)


class Probes:
    """A kubelet's probes while something else goes on."""

    def __init__(self, host: str, port: int, *paths: str) -> None:
        self._words = ("reliability.attacks.probe", host, str(port), *paths)
        self.waited_s: list[float] = []
        self.failures: list[str] = []
        """Errors of probes that were not answered."""

    @asynccontextmanager
    async def during(self) -> AsyncIterator[None]:
        """Probe during the block; `waited_s` has every wait afterwards."""
        async with running(*self._words, read=True) as process:
            assert process.stdout is not None
            await process.stdout.readline()  # a busy machine takes seconds to start it
            yield
            process.send_signal(signal.SIGTERM)
            said, _ = await process.communicate()
            found = json.loads(said or "[]") or [[math.inf, "no probe ended"]]
            self.waited_s += [waited_s for waited_s, _ in found]
            self.failures += [why for _, why in found if why]
