"""The project's images, and the lock file that each is installed from."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Image:
    """One image; its paths are seen from the root of the repository."""

    name: str
    dockerfile: str
    lock: str


IMAGES = (
    Image("headroom-operator", "deploy/operator.Dockerfile", "deploy/operator.lock"),
    Image("headroom-model-server", "deploy/model-server.Dockerfile", "deploy/model-server.lock"),
    Image(
        "headroom-model-server-torch",
        "deploy/model-server.Dockerfile",
        "deploy/model-server-torch.lock",
    ),
    Image("headroom-gateway", "deploy/gateway.Dockerfile", "deploy/gateway/requirements.lock"),
    Image(
        "headroom-downloader", "deploy/downloader.Dockerfile", "deploy/downloader/requirements.lock"
    ),
)
