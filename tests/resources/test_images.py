"""Every COPY source of the Dockerfiles is in the build context that .dockerignore leaves."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path, PurePosixPath

import pytest

from cluster.images.builds import copied_sources

ROOT = Path(__file__).parents[2]
TRACKED = subprocess.run(
    ["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True
).stdout.split()
DOCKERFILES = [name for name in TRACKED if PurePosixPath(name).match("*Dockerfile")]
IGNORE = (ROOT / ".dockerignore").read_text()
LEFT_OUT = re.compile(r"operator/headroom/simulator/traces/.*\.csv\.gz")
"""Recorded workloads of the simulator, which no image needs."""


def is_ignored(path: str, ignore: str) -> bool:
    """Evaluate .dockerignore as Docker does: the last pattern that matches the path decides.

    A pattern matches a path or one of its parents; `*` and `?` stop at a slash, `**` does not.
    """
    ignored = False
    names = [path, *(str(parent) for parent in PurePosixPath(path).parents)]
    for line in ignore.splitlines():
        pattern = line.strip()
        if pattern and not pattern.startswith("#"):
            negated = pattern.startswith("!")
            regex = _regex(pattern.removeprefix("!").strip("/"))
            if any(re.fullmatch(regex, name) for name in names):
                ignored = not negated
    return ignored


def _regex(pattern: str) -> str:
    parts = re.split(r"(\*\*/|\*\*|\*|\?)", pattern)
    wildcards = {"**/": "(?:.*/)?", "**": ".*", "*": "[^/]*", "?": "[^/]"}
    return "".join(wildcards.get(part, re.escape(part)) for part in parts)


@pytest.mark.parametrize("dockerfile", DOCKERFILES)
def test_dockerfile_copies_only_what_the_build_context_has(dockerfile: str) -> None:
    text = (ROOT / dockerfile).read_text()
    sources = copied_sources(text)
    assert bool(sources) == ("\nCOPY " in text)
    for source in sources:
        files = [one for one in TRACKED if one == source or one.startswith(f"{source}/")]
        assert files, f"{source} is not in the repository"
        missing = [one for one in files if is_ignored(one, IGNORE) and not LEFT_OUT.fullmatch(one)]
        assert not missing, f"{dockerfile} copies {source}"


def test_build_context_leaves_out_what_no_image_needs() -> None:
    for path in ("tests/conftest.py", ".git/HEAD", "operator/headroom/api/__pycache__/a.pyc"):
        assert is_ignored(path, IGNORE), path


@pytest.mark.parametrize(
    ("path", "ignore", "ignored"),
    [
        ("deploy/gateway/start.py", "*\n!deploy/*.lock", True),
        ("deploy/operator.lock", "*\n!deploy/*.lock", False),
        ("deploy/gateway/requirements.lock", "*\n!deploy/*.lock", True),
        ("deploy/gateway/start.py", "*\n!deploy/gateway", False),
        ("a/b/c.pyc", "**/*.pyc", True),
        ("c.pyc", "**/*.pyc", True),
        ("a/b", "# a\n\n/a/b/", True),
    ],
)
def test_dockerignore_last_matching_pattern_decides(path: str, ignore: str, ignored: bool) -> None:
    assert is_ignored(path, ignore) is ignored
