"""The project's images: their names in the manifests, and their Dockerfiles."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from cluster.images import builds as images
from cluster.images.builds import Archive
from cluster.layout import Cache
from cluster.progress import Progress

REPOSITORY = Path(__file__).resolve().parents[3]


@dataclass(frozen=True)
class Shipped:
    """One image of the project."""

    image: str
    dockerfile: str
    build_args: Mapping[str, str] = field(default_factory=dict)


OPERATOR = Shipped("localhost/headroom-operator:dev", "deploy/operator.Dockerfile")
SERVER = Shipped("localhost/headroom-model-server:dev", "deploy/model-server.Dockerfile")
SERVER_WITH_TORCH = Shipped(
    "localhost/headroom-model-server-torch:dev",
    "deploy/model-server.Dockerfile",
    {"EXTRAS": "server,torch"},
)
GATEWAY = Shipped("localhost/headroom-gateway:dev", "deploy/gateway.Dockerfile")
DOWNLOADER = Shipped("localhost/headroom-downloader:dev", "deploy/downloader.Dockerfile")
SMALL = (OPERATOR, SERVER)
"""Images of the demo and the scenarios; torch makes a slow tier of its own (16 GB of disk)."""


def build(cache: Cache, wanted: Sequence[Shipped], progress: Progress) -> list[Archive]:
    """Build those images whose inputs have changed, and archive them."""
    return [
        images.build(
            cache,
            each.image,
            REPOSITORY / each.dockerfile,
            REPOSITORY,
            progress,
            each.build_args,
        )
        for each in wanted
    ]
