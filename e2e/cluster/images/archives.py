"""Built images as files, and bundles of the layers that a container runtime lacks.

An archive is a folder with an image's manifest, configuration and layers, each named by its digest.
A runtime is handed a bundle: a tar in OCI layout without the layers that it has already, so that
after a small change a small file is written and read.
"""

from __future__ import annotations

import hashlib
import io
import json
import shutil
import tarfile
from collections.abc import Callable
from pathlib import Path

from cluster.images.buildah import buildah
from cluster.layout import Cache

NAME_FOR_CONTAINERD = "io.containerd.image.name"


def push(cache: Cache, image: str, folder: Path) -> None:
    """Write an image from the builder's storage into a folder of its own."""
    partial = folder.with_suffix(".partial")
    shutil.rmtree(partial, ignore_errors=True)
    folder.parent.mkdir(parents=True, exist_ok=True)
    # Uncompressed: it never leaves this machine, and compressing takes longest of all.
    words = ("push", "--disable-compression", image, f"dir:{partial}")
    buildah(cache, *words, what=f"archiving {image}")
    shutil.rmtree(folder, ignore_errors=True)
    partial.rename(folder)


def write_bundle(folder: Path, image: str, target: Path, has: Callable[[str], bool]) -> None:
    """Write a tar of the archived image, without the blobs whose digest the runtime `has`."""
    manifest = (folder / "manifest.json").read_bytes()
    described = json.loads(manifest)
    digest = f"sha256:{hashlib.sha256(manifest).hexdigest()}"
    descriptor = {
        "mediaType": described["mediaType"],
        "digest": digest,
        "size": len(manifest),
        "annotations": {NAME_FOR_CONTAINERD: image},
    }
    index = {"schemaVersion": 2, "manifests": [descriptor]}
    parts = [described["config"], *described["layers"]]
    with tarfile.open(target, "w") as bundle:
        _add(bundle, "oci-layout", json.dumps({"imageLayoutVersion": "1.0.0"}).encode())
        _add(bundle, "index.json", json.dumps(index).encode())
        _add(bundle, blob_name(digest), manifest)
        for blob in dict.fromkeys(part["digest"] for part in parts):
            if not has(blob):
                bundle.add(folder / blob.partition(":")[2], arcname=blob_name(blob))


def blob_name(digest: str) -> str:
    """Return the path of a blob in an OCI layout; containerd's content store has the same names."""
    return f"blobs/{digest.replace(':', '/')}"


def _add(bundle: tarfile.TarFile, name: str, content: bytes) -> None:
    entry = tarfile.TarInfo(name)
    entry.size = len(content)
    bundle.addfile(entry, io.BytesIO(content))
