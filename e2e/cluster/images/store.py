"""Imported images, kept between runs: an import takes seconds, a clone of it tenths.

The store is a containerd root that only this module writes to. A node gets a clone of it: files are
hard links, which is safe because containerd and overlayfs never write into committed layers; the
databases are copies.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from cluster import configuration, locks
from cluster.commands import environment, run, tail
from cluster.errors import ClusterError
from cluster.images import archives
from cluster.images.buildah import snapshotter
from cluster.images.builds import Archive
from cluster.layout import Cache
from cluster.progress import Progress

NAMESPACE = "k8s.io"
START_PATIENCE_S = 20.0
IMPORT_PATIENCE_S = 1800.0
"""The image with torch, 6 GB, takes three minutes on a disk of 100 MB/s."""


def ensure(cache: Cache, archives: Sequence[Archive], progress: Progress) -> None:
    """Import those archives that the store does not hold in their present form."""
    with locks.exclusive(_lock(cache), "importing images", progress):
        held = _held(cache)
        wanted = [archive for archive in archives if held.get(archive.image) != archive.digest]
        if not wanted:
            return
        names = ", ".join(archive.image for archive in wanted)
        with progress.step(f"Importing {names}"), _containerd(cache) as socket:
            for archive in wanted:
                import_archive(cache, archive, socket, _root(cache), [])
                held[archive.image] = archive.digest
        _record(cache).write_text(json.dumps(held, indent=1))


def clone(cache: Cache, target: Path) -> dict[str, str]:
    """Make `target` a containerd root with all images of the store; return their digests."""
    with locks.shared(_lock(cache)):
        root = _root(cache)
        root.mkdir(parents=True, exist_ok=True)
        run(["cp", "--archive", "--link", root, target], what="cloning the image store")
        for database in root.glob("**/*.db"):
            copy = target / database.relative_to(root)
            copy.unlink()
            shutil.copy2(database, copy)
        return _held(cache)


def import_archive(
    cache: Cache, archive: Archive, socket: Path, root: Path, inside: Sequence[str]
) -> None:
    """Import into the containerd at `socket`; `inside` is a command that enters its namespaces."""
    content = root / "io.containerd.content.v1.content"

    def has(digest: str) -> bool:
        return (content / archives.blob_name(digest)).exists()

    command: list[str | Path] = [
        *inside,
        *("ctr", "--address", socket, "--namespace", NAMESPACE, "images", "import"),
        *("--snapshotter", snapshotter(cache.root)),
    ]
    folder = archive.folder(cache)
    with tempfile.TemporaryDirectory(dir=cache.root, prefix="bundle-") as scratch:
        bundle = Path(scratch) / "image.tar"
        try:
            archives.write_bundle(folder, archive.image, bundle, has)
            run([*command, bundle], what=f"importing {archive.image}", timeout_s=IMPORT_PATIENCE_S)
        except ClusterError:
            # containerd may have collected a layer since the last look: bring all of them.
            archives.write_bundle(folder, archive.image, bundle, lambda _: False)
            run([*command, bundle], what=f"importing {archive.image}", timeout_s=IMPORT_PATIENCE_S)


def _root(cache: Cache) -> Path:
    return cache.store / "root"


def _record(cache: Cache) -> Path:
    return cache.store / "images.json"


def _held(cache: Cache) -> dict[str, str]:
    record = _record(cache)
    held: dict[str, str] = json.loads(record.read_text()) if record.exists() else {}
    return held


def _lock(cache: Cache) -> Path:
    return cache.store / "lock"


@contextmanager
def _containerd(cache: Cache) -> Iterator[Path]:
    """A containerd on the store, in a mount namespace of its own, for as long as the block runs."""
    with tempfile.TemporaryDirectory(prefix="headroom-store-") as folder:
        state = Path(folder)
        socket, config, log = state / "ctd.sock", state / "containerd.toml", state / "log"
        text = configuration.containerd(
            str(_root(cache)), str(state / "s"), str(socket), folder, snapshotter(cache.root)
        )
        config.write_text(f"disabled_plugins = ['io.containerd.grpc.v1.cri']\n{text}")
        with log.open("wb") as output:
            process = subprocess.Popen(
                [
                    *("setpriv", "--pdeathsig", "KILL"),
                    *("unshare", "--mount", "--propagation", "private"),
                    *("containerd", "--config", str(config)),
                ],
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                env=environment(),
            )
        try:
            _wait_for(process, socket, log)
            yield socket
        finally:
            process.send_signal(signal.SIGTERM)
            process.wait()


def _wait_for(process: subprocess.Popen[bytes], socket: Path, log: Path) -> None:
    deadline = time.monotonic() + START_PATIENCE_S
    while process.poll() is None and time.monotonic() < deadline:
        if socket.exists() and os.access(socket, os.W_OK):
            return
        time.sleep(0.02)
    raise ClusterError(f"containerd did not start on the image store:\n{tail(log.read_text())}")
