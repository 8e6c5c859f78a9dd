"""Prometheus and promtool from Debian's package, unpacked in the cache; needs no root."""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path

from cluster.commands import SYSTEM_PATH, run
from cluster.errors import NotPossibleError
from cluster.layout import Cache
from cluster.progress import Progress

PACKAGE = "prometheus"
PROGRAMS = ("prometheus", "promtool")


def folder(cache: Cache) -> Path:
    """Return the folder of the programs, unpacked or not."""
    return cache.binaries / "prometheus-debian"


def program(cache: Cache, name: str) -> Path:
    """The path of one of `PROGRAMS`."""
    return folder(cache) / name


def ensure(cache: Cache, progress: Progress) -> Path:
    """Unpack them unless they are there: 20 MB to fetch, half a minute.

    Raises:
        NotPossibleError: this system is no Debian.
        ClusterError: the package cannot be fetched.
    """
    target = folder(cache)
    if target.exists():
        return target
    if shutil.which("apt-get", path=SYSTEM_PATH) is None:
        raise NotPossibleError(
            f"{' and '.join(PROGRAMS)} come from a Debian package, and this system has no apt-get. "
            f"Put both programs into {target}."
        )
    cache.binaries.mkdir(parents=True, exist_ok=True)
    with (
        progress.step(f"Fetching the Debian package {PACKAGE}"),
        tempfile.TemporaryDirectory(dir=cache.binaries, prefix="partial-") as scratch,
    ):
        _fetch(Path(scratch))
        whole = Path(scratch) / "programs"
        whole.mkdir()
        for name in PROGRAMS:
            (Path(scratch) / "root" / "usr" / "bin" / name).rename(whole / name)
        whole.rename(target)
    return target


def _fetch(scratch: Path) -> None:
    """Download with an index of its own, for the machine's belongs to root and may be empty."""
    for name in ("lists/partial", "cache/archives/partial"):
        (scratch / name).mkdir(parents=True)
    settings = {
        "Dir::State::Lists": str(scratch / "lists"),
        "Dir::Cache": str(scratch / "cache"),
        "APT::Sandbox::User": "",  # the sandbox's user may not write here
        "Acquire::Languages": "none",
    }
    own = [word for key, value in settings.items() for word in ("-o", f"{key}={value}")]
    run(["apt-get", *own, "-q", "update"], what="reading the package index", cwd=scratch)
    run(["apt-get", *own, "-q", "download", PACKAGE], what=f"fetching {PACKAGE}", cwd=scratch)
    (archive,) = scratch.glob(f"{PACKAGE}_*.deb")
    run(["dpkg-deb", "-x", archive, scratch / "root"], what=f"unpacking {PACKAGE}")
