"""Downloads a model into a folder before its server starts, and verifies its digest.

    python download.py hf://org/name@revision /models --digest sha256:...

It runs the client of each store: `hf` of huggingface_hub, `aws s3 sync`, which read credentials
from the environment. A restarted container resumes the download. An error is one sentence, which
the kubelet copies into the pod's status.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path

SAID = Path(os.environ.get("TERMINATION_LOG", "/dev/termination-log"))
BOOKKEEPING = ".cache"
"""Folder of `hf` with its progress; removed when the model is complete."""
FAILED, WRONG = 1, 3
_TAIL = 400
_COLOURS = re.compile(r"\x1b\[[0-9;]*m")


class FetchError(Exception):
    """The model could not be downloaded; the message says why, and the next step."""

    def __init__(self, message: str, code: int = FAILED) -> None:
        super().__init__(message)
        self.code = code


def main(arguments: Sequence[str] | None = None) -> int:
    """Download, verify and report."""
    parser = argparse.ArgumentParser(description=__doc__, add_help=True)
    parser.add_argument("uri", help="hf://org/name[@revision] or s3://bucket/prefix")
    parser.add_argument("folder", type=Path, help="folder of the model")
    parser.add_argument("--digest", default="", help="required sha256:... of the folder")
    given = parser.parse_args(arguments)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # as process 1 it would be ignored
    try:
        found = fetch(given.uri, given.folder, given.digest)
    except FetchError as failure:
        print(failure, file=sys.stderr, flush=True)
        with suppress(
            OSError
        ):  # outside a pod; inside, the kubelet uses the end of the log instead
            SAID.write_text(str(failure), encoding="utf-8")
        return failure.code
    print(f"{given.uri} is in {given.folder}, digest {found}", flush=True)
    return 0


def fetch(uri: str, folder: Path, wanted: str) -> str:
    """Download the model and return its digest; raise FetchError."""
    words = command(uri, folder)
    print(" ".join(words), flush=True)
    try:
        done = subprocess.run(words, stderr=subprocess.PIPE, check=False)
    except OSError as error:
        raise FetchError(
            f"{words[0]} cannot be run: {error.strerror}; check the image of the downloader"
        ) from None
    sys.stderr.buffer.write(done.stderr)
    sys.stderr.flush()
    if done.returncode:
        said = _COLOURS.sub("", done.stderr.decode("utf-8", "replace"))
        said = " ".join(said.split())[-_TAIL:]
        raise FetchError(f"{uri} was not fetched: {words[0]} ended with {done.returncode}: {said}")
    if next(files(folder), None) is None:
        raise FetchError(f"{uri} has no files: correct model.uri")
    found = digest(folder)
    if wanted and found != wanted:
        rule = "correct model.digest if this is the model that is meant"
        raise FetchError(f"the digest of {uri} is {found}, model.digest is {wanted}: {rule}", WRONG)
    shutil.rmtree(folder / BOOKKEEPING, ignore_errors=True)
    return found


def command(uri: str, folder: Path) -> list[str]:
    """Return the command that downloads the model."""
    scheme, _, rest = uri.partition("://")
    if scheme == "hf":
        name, _, revision = rest.partition("@")
        pinned = ["--revision", revision] if revision else []
        return ["hf", "download", name, *pinned, "--local-dir", str(folder)]
    if scheme == "s3":
        return ["aws", "s3", "sync", uri, str(folder), "--only-show-errors", "--no-follow-symlinks"]
    raise FetchError(f"the URI must start with hf:// or s3://; got {uri}")


def digest(folder: Path) -> str:
    """Return the `sha256sum` of the folder's `sha256sum` list, sorted by path.

    As a command, in the folder:
    find . -type f -not -path './.cache/*' -print0 | LC_ALL=C sort -z |
      xargs -0 sha256sum | sha256sum
    """
    whole = hashlib.sha256()
    for name, path in sorted(
        (os.fsencode(f"./{one.relative_to(folder)}"), one) for one in files(folder)
    ):
        with path.open("rb") as file:
            found = hashlib.file_digest(file, "sha256").hexdigest().encode()
        # As `sha256sum` does: else a name with a line feed could stand for two files.
        shown = name.replace(b"\\", b"\\\\").replace(b"\n", b"\\n").replace(b"\r", b"\\r")
        mark = b"" if shown == name else b"\\"
        whole.update(mark + found + b"  " + shown + b"\n")
    return f"sha256:{whole.hexdigest()}"


def files(folder: Path) -> Iterator[Path]:
    """Yield the files of the model."""
    for parent, folders, names in os.walk(folder):
        if Path(parent) == folder and BOOKKEEPING in folders:
            folders.remove(BOOKKEEPING)
        for name in names:
            path = Path(parent, name)
            if path.is_file() and not path.is_symlink():
                yield path


if __name__ == "__main__":
    sys.exit(main())
