"""The downloader: each store's program, the digest check, and one sentence on failure."""

from __future__ import annotations

import hashlib
import os
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from headroom.api.service_spec.model import FETCHED

SCRIPT = Path(__file__).parents[2] / "deploy" / "downloader" / "download.py"
FILES = {"config.json": b"{}\n", "weights/a b.safetensors": bytes(range(256)) * 40}
BY_HAND = (
    "find . -type f -not -path './.cache/*' -print0 | LC_ALL=C sort -z | "
    "xargs -0 sha256sum | sha256sum"
)
"""Command that the documents name."""


class Stand:
    """Fake store programs that copy from a folder, and the model's folder."""

    def __init__(self, folder: Path) -> None:
        self.stored, self.model, self._bin = folder / "stored", folder / "model", folder / "bin"
        self.said, self.asked = folder / "said", folder / "asked"
        for each in (self.stored, self.model, self._bin):
            each.mkdir()
        for name, content in FILES.items():
            path = self.stored / name
            path.parent.mkdir(exist_ok=True)
            path.write_bytes(content)
        self.program(
            "hf", "cp -r {stored}/. {model}; mkdir {model}/.cache; date > {model}/.cache/x"
        )
        self.program("aws", "cp -r {stored}/. {model}")

    def program(self, name: str, body: str) -> None:
        words = body.format(
            stored=shlex.quote(str(self.stored)), model=shlex.quote(str(self.model))
        )
        path = self._bin / name
        path.write_text(
            f'#!/bin/sh\nset -e\necho {name} "$@" > {shlex.quote(str(self.asked))}\n{words}\n'
        )
        path.chmod(0o755)

    def fetch(self, uri: str, *more: str) -> subprocess.CompletedProcess[str]:
        paths = f"{self._bin}:{os.environ['PATH']}"
        return subprocess.run(
            [sys.executable, SCRIPT, uri, self.model, *more],
            env={"PATH": paths, "TERMINATION_LOG": str(self.said)},
            check=False,
            capture_output=True,
            text=True,
        )

    def by_hand(self) -> str:
        done = subprocess.run(
            BY_HAND, shell=True, cwd=self.stored, check=True, capture_output=True, text=True
        )
        return f"sha256:{done.stdout.split()[0]}"


@pytest.fixture
def stand(tmp_path: Path) -> Stand:
    return Stand(tmp_path)


@pytest.mark.parametrize(
    ("uri", "asked"),
    [
        ("hf://acme/m", "hf download acme/m --local-dir {}"),
        ("hf://acme/m@v1/x", "hf download acme/m --revision v1/x --local-dir {}"),
        ("s3://b/p", "aws s3 sync s3://b/p {} --only-show-errors --no-follow-symlinks"),
    ],
)
def test_downloader_calls_the_store_and_checks_the_digest(
    stand: Stand, uri: str, asked: str
) -> None:
    assert uri.partition("://")[0] in FETCHED
    done = stand.fetch(uri, "--digest", stand.by_hand())
    assert done.returncode == 0, done.stderr
    assert stand.by_hand() in done.stdout
    assert stand.asked.read_text().strip() == asked.format(stand.model)
    found = {
        path.relative_to(stand.model).as_posix(): path.read_bytes()
        for path in stand.model.rglob("*")
        if path.is_file()
    }
    assert found == FILES, "and nothing of the program's own"


def test_name_with_a_line_feed_does_not_replace_another_file(stand: Stand) -> None:
    """A store could leave out a file of the model whose digest is required."""
    pinned = stand.by_hand()
    stand.program("hf", "cp -r {stored}/. {model}")
    (stand.stored / "config.json").unlink()
    (weights,) = (path for path in stand.stored.rglob("*") if path.is_file())
    listed = hashlib.sha256(weights.read_bytes()).hexdigest()
    folder = stand.stored / f"config.json\n{listed}  ."
    (folder / "weights").mkdir(parents=True)
    (folder / "weights" / weights.name).write_bytes(FILES["config.json"])
    weights.unlink()
    done = stand.fetch("hf://acme/m", "--digest", pinned)
    assert done.returncode == 3
    assert stand.fetch("hf://acme/m", "--digest", stand.by_hand()).returncode == 0


@pytest.mark.parametrize(
    ("uri", "program", "code", "says"),
    [
        (
            "hf://acme/m",
            "printf '\\033[31m401\\033[0m\\nUnauthorized' >&2; exit 7",
            1,
            "hf ended with 7: 401 Unauthorized",
        ),
        ("hf://acme/m", "true", 1, "hf://acme/m has no files: correct model.uri"),
        ("hf://acme/m", "echo x > {model}/x", 3, "correct model.digest if this is the model"),
        ("ftp://acme/m", "true", 1, "must start with hf:// or s3://; got ftp://acme/m"),
    ],
    ids=["refused", "empty", "another", "scheme"],
)
def test_failure_is_one_sentence_in_the_pod_status(
    stand: Stand, uri: str, program: str, code: int, says: str
) -> None:
    stand.program("hf", program)
    done = stand.fetch(uri, "--digest", f"sha256:{'0' * 64}")
    assert done.returncode == code
    assert says in stand.said.read_text()
    assert stand.said.read_text() in done.stderr
