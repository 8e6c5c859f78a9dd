"""Reads a lock file: names, versions and hashes."""

from __future__ import annotations

import re
from dataclasses import dataclass

from packaging.requirements import InvalidRequirement, Requirement
from packaging.utils import canonicalize_name

PREFIX = "sha256:"
SHA256 = re.compile(r"[0-9a-f]{64}")


class LockError(ValueError):
    """A line that is no pin; the message ends with the next step."""


@dataclass(frozen=True)
class Pin:
    """One package of a lock file."""

    name: str
    version: str
    sha256: tuple[str, ...]
    """In hexadecimal digits, sorted: one for each file that may be installed."""
    marker: str = ""
    """Environment marker (PEP 508) of its installation; empty: everywhere."""


def pins(text: str) -> tuple[Pin, ...]:
    """Every pin of a lock file as `pip --require-hashes` reads it, by name.

    Raises:
        LockError: a line is no `name==version` with hashes, or a package is listed twice.
    """
    without_comments = re.sub(r"(?m)(^|\s)#.*$", "", text)
    lines = re.sub(r"\\\n", " ", without_comments).splitlines()
    found = [_pin(line.strip()) for line in lines if line.strip()]
    places = [(each.name, each.marker) for each in found]
    twice = sorted({name for name, marker in places if places.count((name, marker)) > 1})
    if twice:
        raise LockError(f"a lock must pin a package once; got {', '.join(twice)} twice.")
    return tuple(sorted(found, key=lambda each: (each.name, each.version)))


def _pin(line: str) -> Pin:
    words, *hashes = re.split(r"\s+--hash=", line)
    try:
        wanted = Requirement(words)
    except InvalidRequirement as error:
        raise LockError(f"a lock must contain only pins; got {line[:80]!r}.") from error
    exact = [each for each in wanted.specifier if each.operator == "==" and "*" not in each.version]
    if len(exact) != 1 or len(wanted.specifier) != 1:
        raise LockError(f"a pin must be name==version; got {words!r}. `make lock` writes it.")
    digits = sorted(each.strip().removeprefix(PREFIX) for each in hashes)
    if not digits or not all(SHA256.fullmatch(each) for each in digits):
        raise LockError(f"{words!r} must have a valid SHA-256. `make lock` writes them.")
    return Pin(
        canonicalize_name(wanted.name),
        exact[0].version,
        tuple(digits),
        str(wanted.marker) if wanted.marker else "",
    )
