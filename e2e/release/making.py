"""Makes one release from the tree: the same tree gives the same bytes."""

from __future__ import annotations

import hashlib
import os
import shutil
import tempfile
from dataclasses import dataclass
from pathlib import Path

import yaml

from chart.helm import Helm
from release.bill import bill
from release.dockerfile import DockerfileError, base, loose_ends
from release.images import IMAGES
from release.lock import pins
from release.plugin import MANIFEST, build_wheel, krew_manifest, pack_plugin
from release.signing import Signer

CHART = Path("charts", "headroom")
SUMS = "SHA256SUMS"
OURS = (
    *("headroom-*.tgz", "headroom-*.tgz.prov", "headroom-*.cdx.json", "headroom-*.whl"),
    *("kubectl-headroom-*.tar.gz", MANIFEST, f"{SUMS}*"),
)
"""Files that releases write: an earlier one's would pass for this one's."""
UNPUBLISHED = "https://example.org/headroom"
PACKED_S = 315_532_800
"""The time that packed files bear, in seconds since 1970: the first of 1980, as in wheels."""


@dataclass(frozen=True)
class Release:
    """The files of a release."""

    version: str
    files: tuple[Path, ...]
    signed: bool


def make(
    root: Path, output: Path, helm: Helm, signer: Signer | None = None, *, url: str = UNPUBLISHED
) -> Release:
    """Write chart, SBOMs, wheel, plugin and checksums of the tree; sign if there is a signer.

    `url` is the folder that publishes the files; the krew manifest points there.
    What fails on the way leaves the folder as it was.

    Raises:
        ClusterError: Helm or gpg failed; the message holds what it said.
        DockerfileError: an image takes something in whose content is not fixed.
        LockError: a lock file pins something without a version or a hash.
    """
    version = str(yaml.safe_load((root / CHART / "Chart.yaml").read_text())["version"])
    output.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=".release-", dir=output) as folder:
        made = Path(folder)
        for name, text in bills(root, version).items():
            (made / name).write_text(text)
        package(root / CHART, made, helm, signer)
        archive = pack_plugin(
            build_wheel(root, made, PACKED_S), root / "LICENSE", version, PACKED_S
        )
        (made / MANIFEST).write_text(krew_manifest(archive, version, url))
        (made / SUMS).write_text(sums(sorted(made.iterdir())))
        if signer:
            signer.sign(made / SUMS)
        for earlier in {file for pattern in OURS for file in output.glob(pattern)}:
            earlier.unlink()
        files = [file.rename(output / file.name) for file in sorted(made.iterdir())]
    return Release(version, tuple(files), signed=signer is not None)


def bills(root: Path, version: str) -> dict[str, str]:
    """Return the SBOM of each image by the name of its file."""
    found = {}
    for image in IMAGES:
        dockerfile = (root / image.dockerfile).read_text()
        if loose := loose_ends(dockerfile):
            raise DockerfileError(f"{image.dockerfile}: {'; '.join(loose)}")
        pinned = pins((root / image.lock).read_text())
        text = bill(image.name, version, base(dockerfile), pinned)
        found[f"{image.name}-{version}.cdx.json"] = text
    return found


def package(chart: Path, output: Path, helm: Helm, signer: Signer | None) -> None:
    """Pack the chart; if it is signed, write its provenance next to it."""
    with tempfile.TemporaryDirectory(prefix="headroom-chart-") as folder:
        copy = Path(folder, chart.name)
        shutil.copytree(chart, copy)
        for file in copy.rglob("*"):
            os.utime(file, (PACKED_S, PACKED_S))  # Helm packs the times of files
        helm("package", copy, "--destination", output, *(signer.for_helm if signer else ()))


def sums(files: list[Path]) -> str:
    """The files' hashes as `sha256sum --check` reads them."""
    lines = [f"{hashlib.sha256(file.read_bytes()).hexdigest()}  {file.name}\n" for file in files]
    return "".join(lines)
