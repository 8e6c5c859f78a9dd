"""Servers under test as processes, each in its own folder, stopped with their children."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
import uuid
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from free_ports import free_port
from serverbench.accounts import MARK, Usage, marked, usage
from serverbench.peer_servers import triton_root
from serverbench.servers import PEERS, Device, Place, Server

POLL_S = 0.05
SETTLE_S = 0.3
END_S = 10.0
SHOWN_LOG_LINES = 3


class CannotStartError(Exception):
    """A server that is not there or does not get ready; the message says why."""


@dataclass(frozen=True, slots=True)
class Running:
    """A server that answers."""

    server: Server
    port: int
    process: subprocess.Popen[bytes]
    mark: str

    def usage(self) -> Usage:
        """Return the usage of all its processes."""
        return usage(self.mark)

    def probe(self, timeout_s: float = 5.0) -> bool:
        """Ask once; whether the answer is right. Raises: OSError."""
        with socket.create_connection(("127.0.0.1", self.port), timeout=timeout_s) as connection:
            request = self.server.kind(connection="close").request
            connection.sendall(request.encode("latin-1"))
            answer = b""
            while data := connection.recv(65_536):
                answer += data
        return self.server.expected.encode() in answer.partition(b"\r\n\r\n")[2]

    def get(self, path: str, timeout_s: float = 5.0) -> bytes:
        """Raises: OSError, also for a status that is none of success."""
        url = f"http://127.0.0.1:{self.port}{path}"
        with urllib.request.urlopen(url, timeout=timeout_s) as answer:
            body: bytes = answer.read()
        return body


@contextlib.contextmanager
def running(
    server: Server, device: Device, environment: Path, **variables: str
) -> Iterator[Running]:
    """Start it, wait until it is ready, and end it and all that it started.

    Raises:
        CannotStartError: with the end of its log.
    """
    with tempfile.TemporaryDirectory(prefix="serverbench-") as folder:
        place = Place(port=free_port(), folder=Path(folder), environment=environment)
        try:
            _prepare(server, place)
        except (OSError, StopIteration) as error:
            raise CannotStartError(f"{server.name}: not installed: {error}") from error
        mark = uuid.uuid4().hex
        said = {**server.variables(device, place), **variables, MARK: mark}
        log = place.folder / "log"
        try:
            with log.open("wb") as output:
                process = subprocess.Popen(
                    server.command(place),
                    env=_environment(said),
                    cwd=place.folder,
                    stdin=subprocess.DEVNULL,
                    stdout=output,
                    stderr=subprocess.STDOUT,
                    start_new_session=True,
                )
        except (OSError, StopIteration) as error:
            raise CannotStartError(f"{server.name}: not installed: {error}") from error
        try:
            started = Running(server, place.port, process, mark)
            _await_ready(started, log)
            time.sleep(SETTLE_S)
            yield started
        finally:
            _end(process, mark)


def _environment(said: Mapping[str, str]) -> dict[str, str]:
    kept = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("HEADROOM_", "PYTHON", "VIRTUAL_ENV"))
    }
    return {**kept, "RAY_USAGE_STATS_ENABLED": "0", "BENTOML_DO_NOT_TRACK": "True", **said}


def _prepare(server: Server, place: Place) -> None:
    if server.name == "triton":
        model = place.folder / "models" / "model"
        (model / "1").mkdir(parents=True)
        shutil.copy(PEERS / "triton.pbtxt", model / "config.pbtxt")
        shutil.copy(PEERS / "triton_model.py", model / "1" / "model.py")
        _link_backend(place)
    if server.name == "mlserver":
        settings = {
            "host": "127.0.0.1",
            "http_port": place.port,
            "grpc_port": free_port(),
            "metrics_port": free_port(),
            "parallel_workers": 1,
        }
        described = {
            "name": "model",
            "implementation": "mlserver_model.Model",
            "max_batch_size": 8,
            "max_batch_time": 0.005,
        }
        (place.folder / "settings.json").write_text(json.dumps(settings))
        (place.folder / "model-settings.json").write_text(json.dumps(described))


def _link_backend(place: Place) -> None:
    """The wheel keeps Triton's Python backend and its stub for each version of Python apart."""
    root = triton_root(place)
    stub = root / "python_backend_stubs" / f"{sys.version_info.major}.{sys.version_info.minor}"
    backend = place.folder / "backends" / "python"
    backend.mkdir(parents=True)
    for part in (*(root / "backends" / "python").iterdir(), *stub.iterdir()):
        (backend / part.name).symlink_to(part.resolve())


def _await_ready(started: Running, log: Path) -> None:
    """Some say that they are ready before they are: only a right answer counts."""
    server, process = started.server, started.process
    until_s, said = time.monotonic() + server.patience_s, False
    while time.monotonic() < until_s:
        if process.poll() is not None:
            ended = process.returncode
            raise CannotStartError(f"{server.name}: ended with {ended}: {_tail(log)}")
        with contextlib.suppress(OSError):
            said = said or bool(started.get(server.ready_path) or True)
            if started.probe():
                return
        time.sleep(POLL_S)
    said_so = "reported ready, but gave no correct answer" if said else "not ready"
    patience_s = server.patience_s
    raise CannotStartError(f"{server.name}: {said_so} within {patience_s:.0f} s: {_tail(log)}")


def _tail(log: Path) -> str:
    lines = log.read_text(errors="replace").strip().splitlines()
    return " | ".join(line.strip() for line in lines[-SHOWN_LOG_LINES:])[-400:] or "no log"


def _end(process: subprocess.Popen[bytes], mark: str) -> None:
    process.send_signal(signal.SIGTERM)
    with contextlib.suppress(subprocess.TimeoutExpired):
        process.wait(timeout=END_S)
    for pid in set(marked(mark)) - {process.pid}:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    if process.poll() is None:
        process.kill()
    process.wait()
