"""The operator as a real process that tests kill, stop and restart."""

from __future__ import annotations

import asyncio
import json
import signal
import sys
from collections.abc import Sequence
from pathlib import Path

import aiohttp
import yaml

from cluster.commands import environment
from free_ports import free_port


class OperatorProcess:
    """One instance; `log` takes what all its lives say."""

    def __init__(
        self,
        kubeconfig: Path,
        log: Path,
        *,
        namespaces: Sequence[str] = (),
        tick: str = "500ms",
        instance: str = "operator-0",
        lease_namespace: str = "",
        prometheus: str = "",
        prefix: Sequence[str] = (),
    ) -> None:
        """`prefix` goes before the command, for example to start it in a cgroup."""
        self._kubeconfig, self._log = kubeconfig, log
        self._namespaces, self._tick, self._instance = namespaces, tick, instance
        self._lease = ["--lease-namespace", lease_namespace] if lease_namespace else ["--no-lease"]
        self._prometheus = ["--prometheus", f"default={prometheus}"] if prometheus else []
        self._prefix = ("setpriv", "--pdeathsig", "KILL", *prefix)
        self._process: asyncio.subprocess.Process | None = None
        self.port = 0

    @property
    def pid(self) -> int:
        """Return the process ID of the present run."""
        assert self._process is not None
        return self._process.pid

    @property
    def ended(self) -> bool:
        """Return whether the process is gone, however it went."""
        return self._process is None or self._process.returncode is not None

    async def start(self) -> None:
        """Begin a life; what it keeps it finds in the cluster."""
        self.port = free_port()
        words = ["run", "--tick", self._tick, "--port", str(self.port), *self._lease]
        words += self._prometheus
        words += ["--console-port", str(free_port())]
        words += [word for namespace in self._namespaces for word in ("--namespace", namespace)]
        own = {"KUBECONFIG": str(self._kubeconfig), "HOSTNAME": self._instance}
        own["PYTHONDONTWRITEBYTECODE"] = ""  # as in its image, nothing is compiled at a start
        with self._log.open("ab") as log:
            self._process = await asyncio.create_subprocess_exec(
                *(*self._prefix, sys.executable, "-m", "headroom", *words),
                stdout=log,
                stderr=log,
                env=environment(own),
            )

    async def ready(self) -> bool:
        """Return whether it says that it could decide: rights looked at, services listed."""
        session = aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=5.0))
        try:
            async with session, session.get(f"http://127.0.0.1:{self.port}/readyz") as answer:
                return answer.status == 200
        except (aiohttp.ClientError, TimeoutError):
            return False

    async def kill(self) -> None:
        """End it as the kernel does, without a message to any other process."""
        await self._end(signal.SIGKILL)

    async def stop(self) -> None:
        """End it as the kubelet does."""
        await self._end(signal.SIGTERM)

    def said(self) -> str:
        """Return its log."""
        return self._log.read_text(errors="replace") if self._log.exists() else ""

    async def _end(self, number: signal.Signals) -> None:
        if self._process is not None and self._process.returncode is None:
            self._process.send_signal(number)
            await self._process.wait()


def kubeconfig_through(url: str, own: Path, to: Path) -> Path:
    """Write the same credentials for the server at `url`."""
    config = yaml.safe_load(own.read_text())
    config["clusters"] = [
        {"name": one["name"], "cluster": {"server": url}} for one in config["clusters"]
    ]
    to.touch(mode=0o600)
    to.write_text(json.dumps(config))
    return to
