"""Base images built here, because no registry can be reached: a Python base, and pause."""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path

from cluster import content
from cluster.commands import SYSTEM_PATH, run
from cluster.configuration import PAUSE_IMAGE
from cluster.images.buildah import buildah
from cluster.images.builds import BASE_IMAGE, INPUTS_LABEL, Archive, archive, archived, is_built
from cluster.layout import Cache
from cluster.progress import Progress
from cluster.tools import binaries

SUITE = "bookworm"
PACKAGES = ("python3", "python3-venv", "python3-pip", "ca-certificates", "passwd")
MACHINE_AUTHORITIES = Path("/usr/local/share/ca-certificates")
MACHINE_BUNDLE = Path("/etc/ssl/certs/ca-certificates.crt")
MACHINE_FILES = (Path("/etc/pip.conf"), Path("/etc/uv/uv.toml"))
"""Files by which this machine reaches its package index; builds inside the image need the same."""
FORMAT = "1"
"""Raised when the steps below change what they make."""


def ensure_base(cache: Cache, progress: Progress) -> Archive:
    """The Python base, laid out like the official image: about a minute, once."""
    inputs = _base_key()
    present = archived(cache, BASE_IMAGE)
    if present is not None and present.inputs == inputs:
        return present
    if not is_built(cache, BASE_IMAGE, inputs):
        title = f"Making the base image {BASE_IMAGE} by debootstrap (a minute, once)"
        with (
            progress.step(title),
            tempfile.TemporaryDirectory(dir=cache.root, prefix="rootfs-") as folder,
        ):
            rootfs = Path(folder) / "rootfs"
            _bootstrap(rootfs)
            _make_image(cache, BASE_IMAGE, inputs, rootfs, ["--cmd", "python3"])
    return archive(cache, BASE_IMAGE, inputs, progress)


def ensure_pause(cache: Cache, progress: Progress) -> Archive:
    """The image that holds a pod's namespaces."""
    program = binaries.ensure_pause(cache, progress)
    inputs = content.key_of({"pause": program.parent.name})
    present = archived(cache, PAUSE_IMAGE)
    if present is not None and present.inputs == inputs:
        return present
    with tempfile.TemporaryDirectory(dir=cache.root, prefix="rootfs-") as folder:
        rootfs = Path(folder)
        rootfs.chmod(0o755)
        shutil.copy2(program, rootfs / "pause")
        _make_image(cache, PAUSE_IMAGE, inputs, rootfs, ["--entrypoint", '["/pause"]'])
    return archive(cache, PAUSE_IMAGE, inputs, progress)


def is_complete(cache: Cache) -> bool:
    """Return whether both are there and up to date with this machine."""
    base, pause = archived(cache, BASE_IMAGE), archived(cache, PAUSE_IMAGE)
    return base is not None and base.inputs == _base_key() and pause is not None


def _base_key() -> str:
    machine = [path for path in (MACHINE_BUNDLE, *MACHINE_FILES) if path.exists()]
    parts: dict[str, bytes | str] = {str(path): path.read_bytes() for path in machine}
    return content.key_of(
        {**parts, "suite": SUITE, "packages": " ".join(PACKAGES), "format": FORMAT}
    )


def _bootstrap(rootfs: Path) -> None:
    run(
        ["debootstrap", "--variant=minbase", f"--include={','.join(PACKAGES)}", SUITE, rootfs],
        what="making a Debian root file system (can the package mirror be reached?)",
    )
    for marker in rootfs.glob("usr/lib/python3*/EXTERNALLY-MANAGED"):
        marker.unlink()
    if MACHINE_AUTHORITIES.exists():
        shutil.copytree(
            MACHINE_AUTHORITIES, rootfs / MACHINE_AUTHORITIES.relative_to("/"), dirs_exist_ok=True
        )
    for file in (MACHINE_BUNDLE, *MACHINE_FILES):
        if file.exists():
            target = rootfs / file.relative_to("/")
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(file, target)
    run(
        ["chroot", rootfs, "/usr/bin/python3", "-m", "venv", "/usr/local"],
        what="making the image's Python environment",
    )
    for waste in ("var/cache/apt/archives", "var/lib/apt/lists", "usr/share/doc", "usr/share/man"):
        shutil.rmtree(rootfs / waste, ignore_errors=True)
        (rootfs / waste).mkdir(parents=True)


def _make_image(
    cache: Cache, image: str, inputs: str, rootfs: Path, configuration: list[str]
) -> None:
    container = buildah(cache, "from", "scratch", what=f"starting {image}")
    try:
        buildah(cache, "add", "--quiet", container, rootfs, "/", what=f"filling {image}")
        always = ("--env", f"PATH={SYSTEM_PATH}", "--label", f"{INPUTS_LABEL}={inputs}")
        buildah(cache, "config", *always, *configuration, container, what="configuring")
        buildah(cache, "commit", "--quiet", container, image, what=f"committing {image}")
    finally:
        buildah(cache, "rm", container, what=f"clearing up after {image}")
