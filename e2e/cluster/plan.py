"""The plan of one cluster for its keeper and its supervisor, written before they start."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from pathlib import Path


@dataclass(frozen=True)
class Component:
    """One program of the cluster; its name is also the name of its log."""

    name: str
    argv: tuple[str, ...]
    needs_api: bool
    """Started only once the API server answers."""
    takes_listener: bool = False
    """Inherits the socket that listens on the host."""


@dataclass(frozen=True)
class Plan:
    """All programs of a cluster and the isolation that they run in."""

    api_url: str
    """URL of the API server for the supervisor (a node's is inside its own network)."""
    components: tuple[Component, ...]
    isolated: bool
    """In pid, mount and network namespaces of its own, with cgroups: needs root."""
    persistent: bool
    """Outlives the process that started it; otherwise it ends with that process."""
    listener_fd: int | None
    """The socket on the host's loopback that leads to a node's API server, as an open file."""
    keep_logs_in: str
    """The folder that logs are moved to when the cluster ends by failure."""

    def write(self, path: Path) -> None:
        """Write as JSON."""
        path.write_text(json.dumps(asdict(self), indent=1))

    @classmethod
    def read(cls, path: Path) -> Plan:
        """Read what `write` wrote."""
        found = json.loads(path.read_text())
        found["components"] = tuple(
            Component(**{**each, "argv": tuple(each["argv"])}) for each in found["components"]
        )
        return cls(**found)
