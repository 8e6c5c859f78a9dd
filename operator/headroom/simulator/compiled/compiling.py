"""Compiles the plant's functions, and keeps the machine code until any of their sources changes.

numba's own cache looks only at the file of the function itself. A function also contains the code
of those that it calls, and the numbers of the enumerations that it names: with these changed and
its own file not, the old machine code would run on. So the code is kept in a folder that is named
by a digest of all sources.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar, cast

import numba

_Function = TypeVar("_Function", bound=Callable[..., object])
_OPTIONS: dict[str, Any] = {"cache": True, "_nrt": False}
_FOLDERS = ("compiled", "generation/compiled")
"""Folders whose modules all have compiled functions, or numbers that these contain."""


def _digest() -> str:
    here = Path(__file__).parents[1]
    files = [file for folder in _FOLDERS for file in sorted((here / folder).rglob("*.py"))]
    return hashlib.sha256(b"".join(file.read_bytes() for file in files)).hexdigest()[:16]


_settings: Any = numba.config
_settings.CACHE_DIR = str(
    Path(_settings.CACHE_DIR or Path(__file__).parent / "__pycache__") / f"plant-{_digest()}"
)


def compiled(function: _Function) -> _Function:
    """Return the function compiled at its first call; it must not allocate.

    It is compiled without reference counting: it allocates nothing and keeps no array beyond its
    call. Counting would cost 0.4 us per call that takes the state, 15 times the work itself
    (measured: 0.18 against 2.8 million requests per second).
    """
    return cast("_Function", numba.njit(**_OPTIONS)(function))


def inlined(function: _Function) -> _Function:
    """Return the function for compiled ones to contain: for a few that every request passes.

    A call passes every array of the state, which costs up to 10 ns (measured: 173 against 133 ns
    per request with five functions called or contained).
    """
    return cast("_Function", numba.njit(inline="always", **_OPTIONS)(function))
