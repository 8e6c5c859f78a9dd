"""Bundles: an archived image as an OCI layout, without what the runtime has already."""

from __future__ import annotations

import hashlib
import json
import tarfile
from pathlib import Path

import pytest

from cluster.errors import ClusterError
from cluster.images import archives
from cluster.images.builds import Archive, archived, require
from cluster.layout import Cache

BLOBS = {name: name.encode() * 9 for name in ("config", "base", "own")}
DIGESTS = {name: f"sha256:{hashlib.sha256(blob).hexdigest()}" for name, blob in BLOBS.items()}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """An image of two layers as the image builder archives it."""
    made = tmp_path / "image"
    made.mkdir()
    for name, blob in BLOBS.items():
        (made / DIGESTS[name].removeprefix("sha256:")).write_bytes(blob)
    manifest = {
        "schemaVersion": 2,
        "mediaType": "application/vnd.oci.image.manifest.v1+json",
        "config": {"digest": DIGESTS["config"]},
        "layers": [{"digest": DIGESTS["base"]}, {"digest": DIGESTS["own"]}],
    }
    (made / "manifest.json").write_text(json.dumps(manifest))
    return made


def contents(bundle: Path) -> dict[str, bytes]:
    """Files of a tar by name."""
    with tarfile.open(bundle) as opened:
        members = {member.name: opened.extractfile(member) for member in opened.getmembers()}
        return {name: file.read() for name, file in members.items() if file is not None}


def test_every_blob_of_a_bundle_lies_under_its_own_digest(folder: Path, tmp_path: Path) -> None:
    archives.write_bundle(folder, "some/image:1", tmp_path / "b.tar", lambda _: False)
    found = contents(tmp_path / "b.tar")
    blobs = {name: content for name, content in found.items() if name.startswith("blobs/")}
    assert len(blobs) == 4
    for name, content in blobs.items():
        assert name == f"blobs/sha256/{hashlib.sha256(content).hexdigest()}"


def test_the_index_names_the_image_and_its_manifest(folder: Path, tmp_path: Path) -> None:
    archives.write_bundle(folder, "some/image:1", tmp_path / "b.tar", lambda _: False)
    found = contents(tmp_path / "b.tar")
    (descriptor,) = json.loads(found["index.json"])["manifests"]
    assert descriptor["annotations"] == {"io.containerd.image.name": "some/image:1"}
    assert len(found[archives.blob_name(descriptor["digest"])]) == descriptor["size"]


def test_bundle_omits_layers_that_the_runtime_has(folder: Path, tmp_path: Path) -> None:
    archives.write_bundle(
        folder, "some/image:1", tmp_path / "b.tar", lambda digest: digest == DIGESTS["base"]
    )
    found = contents(tmp_path / "b.tar")
    assert archives.blob_name(DIGESTS["base"]) not in found
    assert archives.blob_name(DIGESTS["own"]) in found


def test_an_image_counts_as_archived_with_record_and_files(tmp_path: Path) -> None:
    cache = Cache(tmp_path)
    made = Archive("some/image:1", inputs="key", digest="sha256:1")
    with pytest.raises(ClusterError, match="cluster image some/image:1 DOCKERFILE"):
        require(cache, made.image)
    made.folder(cache).mkdir(parents=True)
    made.record(cache).write_text(
        json.dumps({"image": made.image, "inputs": "key", "digest": "sha256:1"})
    )
    assert archived(cache, made.image) == made
    made.folder(cache).rmdir()
    assert archived(cache, made.image) is None
