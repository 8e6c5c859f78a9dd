"""Common part of all demos: the cluster, the sample, the load, and the view of a run."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console, RenderableType

from cluster import Cluster
from demo.reader import Reader
from demo.recording import Run, Snapshot


@dataclass(frozen=True, slots=True, kw_only=True)
class Scene:
    """Cluster, namespace and sample of a demo."""

    cluster: str
    """Name of the local node."""
    namespace: str
    sample: Path
    duration_s: float
    """Duration of the load."""
    keep: bool = False
    """Whether the cluster stays at the end."""


class Show(ABC):
    """One demo. The recording grows while the load runs."""

    scene: Scene
    run: Run

    @abstractmethod
    def title(self, name: str) -> str:
        """Say in a line what will be seen of this service."""

    @abstractmethod
    def start_load(self, target: Cluster, reading: Reader, name: str) -> None:
        """Put the load into the cluster."""

    @abstractmethod
    def view(self, snapshot: Snapshot, title: str) -> RenderableType:
        """Lay out what is seen now."""

    @abstractmethod
    def line(self, snapshot: Snapshot) -> str:
        """Say the same in one line, where there is no terminal."""

    @abstractmethod
    def conclude(self, name: str, folder: Path, console: Console) -> bool:
        """Print and write the report; return whether every check held."""
