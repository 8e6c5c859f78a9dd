"""Reads a Dockerfile: its base image, and what its build adds."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

FETCHES = ("apt", "apt-get", "apk", "curl", "dnf", "npm", "wget", "yum")
"""Programs that bring in what no lock pins."""
BASE = re.compile(r"(?P<name>[a-z0-9._/:-]+?):(?P<tag>[\w.-]+)@(?P<digest>sha256:[0-9a-f]{64})")
FROM_A_LOCK = {"--no-deps", "--require-hashes", "-r"}
PIPS = ("pip", "pip3")
PROGRAM = re.compile(rf"(?:^|[(\s/])({'|'.join((*PIPS, *FETCHES))})(?=\s)")


class DockerfileError(ValueError):
    """A Dockerfile whose result is not fixed; the message says which line and what it lacks."""


@dataclass(frozen=True)
class Base:
    """The image that another one begins with."""

    name: str
    tag: str
    digest: str
    """Algorithm and hexadecimal digits; what counts, whatever the tag says."""


def base(text: str) -> Base:
    """The one base image of a Dockerfile.

    Raises:
        DockerfileError: there is none, there are several, or one has no digest.
    """
    found = {_pinned(name) for name in _bases(text)}
    if len(found) != 1:
        raise DockerfileError(f"an image must have one base image; got {len(found)}.")
    return found.pop()


def loose_ends(text: str) -> list[str]:
    """Return what a build would add without fixed content; empty: nothing."""
    found = []
    for name in _bases(text):
        try:
            _pinned(name)
        except DockerfileError as error:
            found.append(str(error))
    for verb, rest in _instructions(text):
        if verb == "ADD":
            found.append(f"use COPY instead of ADD, which may download: {rest}")
        if verb == "COPY":
            source = re.search(r"--from=(\S+)", rest)
            if source and source[1] not in _stages(text):
                found.append(f"files of an image without a digest: {rest}")
        if verb == "RUN":
            found += _fetched(rest)
    return found


def installed_locks(text: str) -> set[str]:
    """The lock files that the Dockerfile copies: what its build may install."""
    copied = [rest.split()[:-1] for verb, rest in _instructions(text) if verb == "COPY"]
    return {word for words in copied for word in words if word.endswith(".lock")}


def _fetched(command: str) -> Iterator[str]:
    for part in re.split(r"&&|\|\||;;|[;|]", command):
        found, words = PROGRAM.search(part), set(part.split())
        if found and found[1] in FETCHES:
            yield f"{found[1]} installs unpinned content: {part.strip()}"
        elif found and "install" in words and not words >= FROM_A_LOCK:
            yield f"pip install needs {', '.join(sorted(FROM_A_LOCK))}: {part.strip()}"


def _pinned(name: str) -> Base:
    found = BASE.fullmatch(name)
    if found is None:
        raise DockerfileError(f"a base image must be NAME:TAG@sha256:DIGEST; got {name!r}.")
    return Base(found["name"], found["tag"], found["digest"])


def _bases(text: str) -> list[str]:
    """Images that stages begin with, arguments filled in; earlier stages are none."""
    arguments: dict[str, str] = {}
    found = []
    for verb, rest in _instructions(text):
        if verb == "ARG":
            name, _, default = rest.partition("=")
            arguments.setdefault(name, default)
        if verb == "FROM":
            image = next(word for word in rest.split() if not word.startswith("--"))
            image = re.sub(r"\$\{?(\w+)\}?", lambda used: arguments.get(used[1], ""), image)
            if image not in _stages(text):
                found.append(image)
    return found


def _stages(text: str) -> set[str]:
    named = [rest.split() for verb, rest in _instructions(text) if verb == "FROM"]
    return {words[-1] for words in named if len(words) > 2 and words[-2].upper() == "AS"}


def _instructions(text: str) -> Iterator[tuple[str, str]]:
    """Each instruction's verb and words, continued lines joined and comments left out."""
    without_comments = re.sub(r"(?m)^\s*#.*\n", "", text)
    for line in re.sub(r"\\\n", " ", without_comments).splitlines():
        verb, _, rest = line.strip().partition(" ")
        if verb:
            yield verb.upper(), " ".join(rest.split())
