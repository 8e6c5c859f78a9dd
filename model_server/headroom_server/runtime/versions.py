"""A version of a model before it is served, and where one stands, as clients are told."""

from __future__ import annotations

from collections.abc import Callable
from enum import StrEnum
from typing import NamedTuple

from headroom_server.runtime.runner import Runner


class Version(NamedTuple):
    """One version of a model, and how it comes to a runner that has not begun to load."""

    name: str
    number: int
    build: Callable[[], Runner]


class State(StrEnum):
    """Where a version stands, in the words of the repository extension."""

    READY = "READY"
    LOADING = "LOADING"
    UNLOADING = "UNLOADING"
    UNAVAILABLE = "UNAVAILABLE"


class LoadFailedError(Exception):
    """A model that did not get warm at run time; what was served before still is."""
