"""Installs the peers' packages, each into a virtual environment under `.bench/peers`."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

from results import FOLDER, digest
from serverbench.servers import REQUIREMENTS

ENVIRONMENTS = FOLDER / "peers"
PATIENCE_S = 600.0
SHOWN_CHARACTERS = 300


class CannotInstallError(Exception):
    """A peer whose packages could not be had; the message says why."""


def install(peer: str, environments: Path = ENVIRONMENTS) -> None:
    """Install what its requirements pin, unless that is there.

    Raises:
        CannotInstallError: with the end of what uv said.
    """
    pinned = REQUIREMENTS / f"{peer}.txt"
    folder = environments / peer
    stamp = folder / "installed"
    wanted = digest([pinned], sys.version)
    if stamp.exists() and stamp.read_text() == wanted:
        return
    shutil.rmtree(folder, ignore_errors=True)
    _uv("venv", "--quiet", "--python", sys.executable, str(folder))
    _uv("pip", "install", "--quiet", "--python", str(folder / "bin" / "python"), "-r", str(pinned))
    stamp.write_text(wanted)


def _uv(*arguments: str) -> None:
    command = [sys.executable, "-m", "uv", *arguments]
    try:
        done = subprocess.run(
            command,
            env={**os.environ, "UV_SYSTEM_CERTS": "1"},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=PATIENCE_S,
            check=False,
        )
    except subprocess.TimeoutExpired as error:
        raise CannotInstallError(f"uv {arguments[0]}: not done in {PATIENCE_S:.0f} s") from error
    if done.returncode:
        said = " ".join(done.stderr.split())[-SHOWN_CHARACTERS:]
        raise CannotInstallError(f"uv {arguments[0]} ended with {done.returncode}: {said}")
