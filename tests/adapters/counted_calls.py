"""Calls of the API server, as an adapter counts them."""

from __future__ import annotations


class Calls(list[tuple[str, str]]):
    def __call__(self, verb: str, code: str, seconds: float) -> None:
        self.append((verb, code))
