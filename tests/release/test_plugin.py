"""A release has the wheel and the krew plugin: complete, reproducible, runnable."""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import tarfile
import zipfile
from pathlib import Path

import pytest
import yaml

from chart.paths import ROOT
from release.making import PACKED_S
from release.plugin import build_wheel, krew_manifest, pack_plugin

VERSION = yaml.safe_load((ROOT / "charts/headroom/Chart.yaml").read_text())["version"]


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build_wheel(ROOT, tmp_path_factory.mktemp("wheel"), PACKED_S)


@pytest.fixture(scope="module")
def archive(wheel: Path) -> Path:
    return pack_plugin(wheel, ROOT / "LICENSE", VERSION, PACKED_S)


def test_wheel_has_version_of_chart_and_both_programs(wheel: Path) -> None:
    assert wheel.name == f"headroom-{VERSION}-py3-none-any.whl"
    with zipfile.ZipFile(wheel) as packed:
        points = packed.read(f"headroom-{VERSION}.dist-info/entry_points.txt").decode()
    assert "headroom = headroom.cli:main" in points
    assert "kubectl-headroom = headroom.cli.plugin:main" in points


def test_wheel_and_archive_of_same_tree_have_same_bytes(
    wheel: Path, archive: Path, tmp_path: Path
) -> None:
    again = build_wheel(ROOT, tmp_path, PACKED_S)
    assert again.read_bytes() == wheel.read_bytes()
    packed = pack_plugin(again, ROOT / "LICENSE", VERSION, PACKED_S)
    assert packed.read_bytes() == archive.read_bytes()


def test_krew_manifest_names_archive_by_address_hash_and_program(archive: Path) -> None:
    spec = yaml.safe_load(krew_manifest(archive, VERSION, "https://example.org/v1/"))["spec"]
    (platform,) = spec["platforms"]
    assert spec["version"] == f"v{VERSION}"
    assert platform["uri"] == f"https://example.org/v1/kubectl-headroom-{VERSION}.tar.gz"
    assert platform["sha256"] == hashlib.sha256(archive.read_bytes()).hexdigest()
    with tarfile.open(archive) as packed:
        assert packed.getmember(platform["bin"]).mode == 0o755
        assert "LICENSE" in packed.getnames()


def test_launcher_runs_plugin_or_prints_how_to_install_it(archive: Path, tmp_path: Path) -> None:
    store, link = tmp_path / "store", tmp_path / "bin" / "kubectl-headroom"
    with tarfile.open(archive) as packed:
        packed.extractall(store, filter="data")
    link.parent.mkdir()
    link.symlink_to("../store/kubectl-headroom")
    venv = tmp_path / "venv"
    env = dict(os.environ, HEADROOM_VENV=str(venv))
    call = [str(link), "get", "two words"]
    first = subprocess.run(call, env=env, capture_output=True, text=True, check=False)
    assert first.returncode == 1
    assert f"python3 -m venv '{venv}'" in first.stderr
    assert f"install '{store}/headroom-{VERSION}-py3-none-any.whl[operator]'" in first.stderr
    (venv / "bin").mkdir(parents=True)
    program = venv / "bin" / "kubectl-headroom"
    program.write_text('#!/bin/sh\nprintf "%s|" "$@"\n')
    shutil.copymode(store / "kubectl-headroom", program)
    second = subprocess.run(call, env=env, capture_output=True, text=True, check=True)
    assert second.stdout == "get|two words|"
