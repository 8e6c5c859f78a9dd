"""Asserts that error answers reveal nothing of the inside of a server."""

from __future__ import annotations

import re

import httpx

SECRET = "hunter2-of-redis"
STACK = re.compile(r"Traceback|File \"|line \d+, in |site-packages")
PATHS = re.compile(r"(?<![\w/:.])/(?:home|tmp|usr|opt|root|srv|var|work|etc)/")


def tells_nothing(text: str, *secrets: str) -> None:
    """No path, no stack, and none of the secrets."""
    for leaked in (STACK.search(text), PATHS.search(text)):
        assert leaked is None, f"{leaked and leaked[0]!r} in {text[:500]}"
    for secret in (SECRET, *secrets):
        assert secret not in text, f"{secret} in {text[:500]}"


async def read_and_checked(answer: httpx.Response) -> None:
    """A hook for clients of a server in this process."""
    if answer.status_code >= 400:
        await answer.aread()
        tells_nothing(answer.text)
        tells_nothing(repr(answer.headers))
