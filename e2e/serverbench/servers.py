"""The servers under test: how each is started and queried, and its expected answer."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from serverbench.generator.exchange import Kind, request_bytes
from serverbench.peers import sleeping

HERE = Path(__file__).parent
PEERS = HERE / "peers"
REQUIREMENTS = HERE / "requirements"
OURS, BARE, FIFO = "headroom", "bare", "fifo"

ROW = b"[1.0,2.0,3.0,4.0]"
V2_BODY = b'{"inputs":[{"name":"x","shape":[1,4],"datatype":"FP64","data":%b}]}' % ROW
V2_PATH = "/v2/models/model/infer"


@dataclass(frozen=True, slots=True, kw_only=True)
class Device:
    """The cost of the model: t(b) = fixed + per_item * b + per_token * b * length seconds."""

    fixed_s: float = 0.006
    per_item_s: float = 0.0005
    per_token_s: float = 0.0
    max_batch_size: int = sleeping.MAX_BATCH_SIZE
    slow_after_s: float | None = None
    """Time after the model's loading from which on it takes twice as long."""

    def batch_s(self, items: int, length: int = 0) -> float:
        """Seconds of one batch."""
        return self.fixed_s + items * (self.per_item_s + self.per_token_s * length)

    @property
    def capacity_rps(self) -> float:
        """Full batches, one after the other."""
        return self.max_batch_size / self.batch_s(self.max_batch_size)

    @property
    def slowdown(self) -> str | None:
        """Return the slowdown as the settings write it."""
        return None if self.slow_after_s is None else f"{self.slow_after_s:g}:{SLOW_FACTOR:g}"


SLOW_FACTOR = 2.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """The port and the folders of a running server."""

    port: int
    folder: Path
    """Its own, empty at the start, absolute."""
    environment: Path
    """The virtual environment of the peers' packages: a folder for each."""


Command = Callable[[Place], Sequence[str]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Server:
    """One of those that are compared."""

    name: str
    title: str
    command: Command
    ready_path: str
    path: str
    body: bytes
    expected: str = "10.0"
    variables: Callable[[Device, Place], Mapping[str, str]] = field(
        default=lambda device, place: peer_variables(device)
    )
    patience_s: float = 60.0
    """Most time until it is ready."""
    peer: bool = True

    def kind(self, **headers: str) -> Kind:
        """Its request for one item."""
        request = request_bytes(
            self.path, self.body, headers=[(k.replace("_", "-"), v) for k, v in headers.items()]
        )
        return Kind(request=request, expected=self.expected)


def peer_variables(device: Device) -> Mapping[str, str]:
    """Return the variables that the sleeping model reads."""
    said = {
        sleeping.FIXED_COST: f"{device.fixed_s}",
        sleeping.PER_ITEM_COST: f"{device.per_item_s}",
        sleeping.PER_TOKEN_COST: f"{device.per_token_s}",
        "PYTHONPATH": str(PEERS),
    }
    return said if device.slowdown is None else said | {sleeping.SLOWDOWN: device.slowdown}


def our_variables(device: Device, place: Place) -> Mapping[str, str]:
    """Settings of the model server; everything else stays at its default."""
    said = {
        "HEADROOM_ENGINE": "emulated",
        "HEADROOM_HOST": "127.0.0.1",
        "HEADROOM_PORT": str(place.port),
        "HEADROOM_MAX_BATCH_SIZE": str(device.max_batch_size),
        "HEADROOM_EMULATED_FIXED_COST_S": f"{device.fixed_s}",
        "HEADROOM_EMULATED_PER_ITEM_COST_S": f"{device.per_item_s}",
        "HEADROOM_EMULATED_LOAD_S": "0",
    }
    if device.per_token_s:
        said["HEADROOM_EMULATED_PER_TOKEN_COST_S"] = f"{device.per_token_s}"
    if device.slowdown is not None:
        said["HEADROOM_EMULATED_SLOWDOWN"] = device.slowdown
    return said


def _bare(mode: str) -> Command:
    return lambda place: [sys.executable, "-m", "bench.server.bare", mode, str(place.port)]


HEADROOM = Server(
    name=OURS,
    title="Headroom, v2",
    command=lambda place: [sys.executable, "-m", "headroom_server"],
    ready_path="/v2/health/ready",
    path=V2_PATH,
    body=V2_BODY,
    variables=our_variables,
    peer=False,
)
TYPED = Kind(
    request=request_bytes("/v1/models/model:predict", b'{"instances":[%b]}' % ROW),
    expected="[10.0]",
)
"""The model server's other protocol."""
BARE_ASGI = Server(
    name=BARE,
    title="bare ASGI, same batcher",
    command=_bare("batching"),
    ready_path="/",
    path="/",
    body=b'{"instances":[%b]}' % ROW,
    variables=lambda device, place: dict(peer_variables(device), PYTHONPATH=""),
    peer=False,
)
PADDED_FIFO = Server(
    name=FIFO,
    title="bare ASGI, FIFO, padded to the longest",
    command=_bare("padded"),
    ready_path="/",
    path="/",
    body=BARE_ASGI.body,
    variables=lambda device, place: dict(peer_variables(device), PYTHONPATH=""),
    peer=False,
)
