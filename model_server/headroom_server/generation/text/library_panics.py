"""Panics of the `tokenizers` library, which no `except Exception` catches.

They are a `BaseException` whose class has no module to import it from. The library panics where a
pattern of the model's tokenizer.json needs more than 10 million steps for a text.
"""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager

NOT_SPLIT = "a prompt must be a text that the model's tokenizer splits in time; got another one"


@contextmanager
def panics_raise(error: Exception) -> Generator[None]:
    """Raise the error instead of a panic."""
    try:
        yield
    except BaseException as panic:
        if type(panic).__name__ != "PanicException":
            raise
        raise error from panic
