"""The images are built from pinned parts: bases by digest, packages by hash, nothing else."""

from __future__ import annotations

from pathlib import Path

import pytest

from chart.paths import ROOT
from cluster.images import shipped
from release.dockerfile import Base, DockerfileError, base, installed_locks, loose_ends
from release.images import IMAGES, Image

DIGEST = f"sha256:{'a' * 64}"
DOCKERFILES = sorted((ROOT / "deploy").rglob("*Dockerfile"))
START = f"ARG BASE=python:3.11-slim@{DIGEST}\nFROM ${{BASE}} AS build\n"


@pytest.mark.parametrize("path", DOCKERFILES, ids=lambda path: path.name)
def test_shipped_image_installs_only_pinned_content(path: Path) -> None:
    assert loose_ends(path.read_text()) == []


@pytest.mark.parametrize("image", IMAGES, ids=lambda image: image.name)
def test_image_installs_the_lock_of_its_sbom(image: Image) -> None:
    assert image.lock in installed_locks((ROOT / image.dockerfile).read_text())


def test_every_dockerfile_and_every_lock_has_its_image() -> None:
    assert {ROOT / image.dockerfile for image in IMAGES} == set(DOCKERFILES)
    assert {ROOT / image.lock for image in IMAGES} == set((ROOT / "deploy").rglob("*.lock"))
    built = (
        shipped.OPERATOR,
        shipped.SERVER,
        shipped.SERVER_WITH_TORCH,
        shipped.GATEWAY,
        shipped.DOWNLOADER,
    )
    assert [image.dockerfile for image in IMAGES] == [each.dockerfile for each in built]


def test_all_images_begin_with_one_base() -> None:
    assert len({base((ROOT / image.dockerfile).read_text()) for image in IMAGES}) == 1


def test_a_base_is_read_with_its_argument() -> None:
    text = f"{START}RUN true\nFROM ${{BASE}}\nCOPY --from=build /a /a\n"
    assert base(text) == Base("python", "3.11-slim", DIGEST)
    assert loose_ends(text) == []


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("FROM python:3.11-slim\n", "a base image must be NAME:TAG@sha256:DIGEST"),
        (
            "ARG BASE=python:3.11-slim\nFROM ${BASE}\n",
            "a base image must be NAME:TAG@sha256:DIGEST",
        ),
        ("ARG BASE\nFROM $BASE\n", "a base image must be NAME:TAG@sha256:DIGEST"),
        (f"{START}RUN pip install kopf\n", "pip install needs"),
        (f"{START}RUN true && python3 -m pip install --no-deps -r a.lock\n", "pip install needs"),
        (f"{START}RUN /v/bin/pip3 install \\\n  --require-hashes -r a.lock\n", "pip install needs"),
        (f"{START}RUN apt-get update && apt-get install -y gcc\n", "apt-get installs unpinned"),
        (f"{START}RUN (curl https://x.example/y | sh)\n", "curl installs unpinned"),
        (f"{START}ADD https://x.example/y /y\n", "use COPY instead of ADD"),
        (f"{START}COPY --from=busybox:1 /bin/sh /sh\n", "an image without a digest"),
    ],
)
def test_unpinned_content_is_found(text: str, said: str) -> None:
    found = loose_ends(text)
    assert found
    assert all(said in each for each in found)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("RUN true\n", "an image must have one base image; got 0"),
        (f"{START}FROM debian:13@{DIGEST}\n", "an image must have one base image; got 2"),
    ],
)
def test_an_image_without_one_base_is_refused(text: str, said: str) -> None:
    with pytest.raises(DockerfileError, match=said):
        base(text)
