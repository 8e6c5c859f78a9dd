"""The peers: how each is started and queried. Their models are in `peers/`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from serverbench.servers import (
    PEERS,
    ROW,
    V2_BODY,
    V2_PATH,
    Command,
    Device,
    Place,
    Server,
    peer_variables,
)

X_BODY = b'{"x":%b}' % ROW


def python_of(peer: str, place: Place) -> str:
    """The interpreter of a peer's environment."""
    return str(place.environment / peer / "bin" / "python")


def _script(peer: str, *arguments: str) -> Command:
    def command(place: Place) -> Sequence[str]:
        script = str(PEERS / f"{peer}_server.py")
        return [python_of(peer, place), script, *(a.format(port=place.port) for a in arguments)]

    return command


def triton_root(place: Place) -> Path:
    """Return where the wheel keeps Triton; StopIteration if it is not installed."""
    packages = (place.environment / "triton" / "lib").glob("python3.*/site-packages/pytriton")
    return next(packages) / "tritonserver"


def _triton(place: Place) -> Sequence[str]:
    return [
        str(triton_root(place) / "bin" / "tritonserver"),
        f"--model-repository={place.folder / 'models'}",
        f"--backend-directory={place.folder / 'backends'}",
        "--http-address=127.0.0.1",
        f"--http-port={place.port}",
        "--allow-grpc=false",
        "--allow-metrics=false",
        "--log-info=false",
    ]


def _triton_variables(device: Device, place: Place) -> Mapping[str, str]:
    packages = triton_root(place).parents[1]  # its backend embeds the system's Python
    return dict(peer_variables(device), PYTHONPATH=f"{PEERS}:{packages}")


def _mlserver(place: Place) -> Sequence[str]:
    return [str(place.environment / "mlserver" / "bin" / "mlserver"), "start", str(place.folder)]


def _bentoml(place: Place) -> Sequence[str]:
    return [
        *(python_of("bentoml", place), "-m", "bentoml", "serve", "bentoml_service:Model"),
        *("--host", "127.0.0.1", "--port", str(place.port), "--working-dir", str(PEERS)),
    ]


PEER_SERVERS = (
    Server(
        name="triton",
        title="Triton, python backend, delay 0",
        command=_triton,
        ready_path="/v2/health/ready",
        path=V2_PATH,
        body=V2_BODY,
        variables=_triton_variables,
    ),
    Server(
        name="mosec",
        title="mosec, wait 5 ms",
        command=_script("mosec", "--address", "127.0.0.1", "--port", "{port}"),
        ready_path="/metrics",
        path="/inference",
        body=X_BODY,
    ),
    Server(
        name="litserve",
        title="LitServe, wait 5 ms",
        command=_script("litserve", "{port}"),
        ready_path="/health",
        path="/predict",
        body=X_BODY,
    ),
    Server(
        name="mlserver",
        title="MLServer, wait 5 ms",
        command=_mlserver,
        ready_path="/v2/health/ready",
        path=V2_PATH,
        body=V2_BODY,
    ),
    Server(
        name="bentoml",
        title="BentoML, adaptive",
        command=_bentoml,
        ready_path="/readyz",
        path="/predict",
        body=b'{"x":[%b]}' % ROW,
    ),
    Server(
        name="ray",
        title="Ray Serve, wait 5 ms",
        command=_script("ray", "{port}"),
        ready_path="/-/healthz",
        path="/",
        body=X_BODY,
    ),
)
PEER_NAMES = tuple(server.name for server in PEER_SERVERS)
