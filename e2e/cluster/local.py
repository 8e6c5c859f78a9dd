"""Clusters that run on this machine: prepared here, then handed to a keeper."""

from __future__ import annotations

import os
import secrets
import shutil
import signal
import subprocess
import sys
import time
from abc import abstractmethod
from datetime import UTC, datetime
from pathlib import Path
from types import TracebackType
from typing import IO, Self

from cluster import access, addresses, certificates, ownership
from cluster.commands import tail
from cluster.errors import ClusterError
from cluster.interface import Cluster
from cluster.keeper import ORDERLY
from cluster.layout import Cache, Layout
from cluster.plan import Component, Plan
from cluster.tools import binaries

API_PATIENCE_S = 90.0
END_PATIENCE_S = 90.0
"""Removing the folder of a node that an image of gigabytes was loaded into takes half a minute."""
POLL_S = 0.02


class LocalCluster(Cluster):
    """A cluster of this machine; a context manager that starts and ends it.

    It ends with the block, and also if this process dies in any way. With `persistent` it outlives
    both, until `end` is called: here, or on another object made with the same name.
    """

    kind: str

    def __init__(
        self, name: str | None = None, *, persistent: bool = False, cache: Cache | None = None
    ) -> None:
        self.cache = cache or Cache.of_this_user()
        unique = name or f"{self.kind}-{os.getpid()}-{secrets.token_hex(2)}"
        self.layout = Layout.named(self.cache, unique)
        self.persistent = persistent
        self.programs = binaries.kubernetes(self.cache)
        self._pipe: IO[bytes] | None = None
        self._keeper: subprocess.Popen[bytes] | None = None
        kubectl = self.programs.component("kubectl")
        super().__init__(unique, self.layout.kubeconfig, kubectl, self.layout.root)

    def __enter__(self) -> Self:
        """Start it."""
        self.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """End it; a persistent one only if the block failed."""
        if not self.persistent or error is not None:
            self.end(keep_logs=error is not None and not isinstance(error, KeyboardInterrupt))

    @property
    def kept_logs(self) -> Path:
        """Return the folder of the logs after a failure."""
        return self.cache.kept_logs / self.name

    def start(self) -> None:
        """Start and wait until usable.

        Raises:
            ClusterError: something is missing, or it did not start; only its logs are left.
        """
        self._require()
        ownership.sweep(self.cache)
        lock = ownership.claim(self.layout)
        try:
            with lock:  # the keeper has its own copy of the open file by the end of the block
                self._prepare_and_launch(lock)
            self._wait_for_api()
            self._finish_start()
        except BaseException as error:
            self.end(keep_logs=isinstance(error, ClusterError))
            raise

    def end(self, *, keep_logs: bool = False) -> None:
        """End all of it; the logs stay in `kept_logs` if asked for."""
        if self._pipe is not None:
            self._tell_keeper(b"" if keep_logs else ORDERLY)
        elif self.persistent:
            if keep_logs and self.layout.logs.exists():
                shutil.copytree(self.layout.logs, self.kept_logs, dirs_exist_ok=True)
            keeper = ownership.keeper_of(self.layout)
            if self._keeper is not None:
                self._keeper.terminate()
            elif keeper is not None:
                os.kill(keeper, signal.SIGTERM)
        if self._keeper is not None:
            try:
                self._keeper.wait(END_PATIENCE_S)
            except subprocess.TimeoutExpired as error:
                raise ClusterError(
                    f"the keeper of {self.name} (process {self._keeper.pid}) did not end within "
                    f"{END_PATIENCE_S:g} s; its folder is {self.layout.root}"
                ) from error
            self._keeper = None
        else:
            self._wait_for_release()
        ownership.sweep(self.cache)

    def log_tail(self, component: str, lines: int = 20) -> str:
        """The last lines of a component's log, wherever it lies now."""
        for folder in (self.layout.logs, self.kept_logs):
            file = folder / f"{component}.log"
            if file.exists():
                return tail(file.read_text(errors="replace"), lines)
        return ""

    @abstractmethod
    def _require(self) -> None:
        """Raise ClusterError where something is missing on this machine."""

    @abstractmethod
    def _components(self, port: int, listener_fd: int) -> tuple[Component, ...]:
        """Return the programs to run; `port` is the API server's port on the host."""

    def _prepare(self) -> None:
        """Write what else the components read."""

    def _finish_start(self) -> None:
        """Wait for more than the API server."""
        self._wait_for_account("default")

    def _prepare_and_launch(self, lock: IO[str]) -> None:
        layout = self.layout
        layout.pod_logs.mkdir(parents=True)
        certificates.write_all(layout.certificates, addresses.SERVER_NAMES, datetime.now(UTC))
        with addresses.listener_on_loopback() as listener:
            port = addresses.port_of(listener)
            inner_url = self._inner_url(port)
            self._write_access(f"https://{addresses.LOOPBACK}:{port}", inner_url)
            self._prepare()
            plan = Plan(
                api_url=inner_url,
                components=self._components(port, listener.fileno()),
                isolated=self.has_node,
                persistent=self.persistent,
                listener_fd=listener.fileno() if self.has_node else None,
                keep_logs_in=str(self.kept_logs),
            )
            plan.write(layout.plan)
            if not self.has_node:
                listener.close()  # the API server takes the port itself
            self._launch(lock, plan.listener_fd)

    def _inner_url(self, port: int) -> str:
        if self.has_node:
            return f"https://{addresses.NODE_ADDRESS}:{addresses.NODE_API_PORT}"
        return f"https://{addresses.LOOPBACK}:{port}"

    def _write_access(self, outer_url: str, inner_url: str) -> None:
        layout, tokens = self.layout, access.new_tokens()
        authority = (layout.certificates / "ca.crt").read_bytes()
        access.write_private(layout.root / "tokens.csv", access.token_file(tokens))
        for path, url, user in (
            (layout.kubeconfig, outer_url, "admin"),
            (layout.inside_kubeconfig, inner_url, "admin"),
            (layout.root / "node.kubeconfig", inner_url, "node"),
            (layout.root / "proxy.kubeconfig", inner_url, "proxy"),
        ):
            access.write_private(path, access.kubeconfig(url, authority, tokens[user]))

    def _launch(self, lock: IO[str], listener_fd: int | None) -> None:
        inherited = [lock.fileno()] + ([] if listener_fd is None else [listener_fd])
        with (self.layout.logs / "keeper.log").open("wb") as log:
            self._keeper = subprocess.Popen(
                [sys.executable, "-m", "cluster.keeper", str(self.layout.root), str(lock.fileno())],
                stdin=subprocess.DEVNULL if self.persistent else subprocess.PIPE,
                stdout=log,
                stderr=subprocess.STDOUT,
                pass_fds=inherited,
                start_new_session=True,  # Ctrl-C reaches the owner only, which then ends in order
            )
        self._pipe = self._keeper.stdin

    def _wait_for_api(self) -> None:
        deadline = time.monotonic() + API_PATIENCE_S
        while not self.layout.api_ready.exists():
            self.check_alive()
            if time.monotonic() > deadline:
                raise ClusterError(
                    f"the API server was not ready within {API_PATIENCE_S:g} s; its last output:\n"
                    f"{self.log_tail('kube-apiserver')}\nLogs: {self.kept_logs}"
                )
            time.sleep(POLL_S)

    def check_alive(self) -> None:
        """Raise ClusterError, with what is known of the reason, if the cluster has ended."""
        if self._keeper is not None and self._keeper.poll() is not None:
            raise ClusterError(
                f"the cluster {self.name} stopped unexpectedly: {self.log_tail('supervisor')} "
                f"{self.log_tail('keeper')}\nLogs: {self.kept_logs}"
            )

    def _tell_keeper(self, word: bytes) -> None:
        assert self._pipe is not None
        try:
            self._pipe.write(word)
            self._pipe.close()
        except BrokenPipeError:
            pass  # it has ended already
        self._pipe = None

    def _wait_for_release(self) -> None:
        deadline = time.monotonic() + END_PATIENCE_S
        while ownership.keeper_of(self.layout) is not None:
            if time.monotonic() > deadline:
                raise ClusterError(f"{self.name} did not end within {END_PATIENCE_S:g} s")
            time.sleep(POLL_S)
