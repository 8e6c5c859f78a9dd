"""Frees the memory of a failed request with its response, not at the next garbage collection.

An error names the frames that it passed, whose variables hold the body and often the error itself:
a cycle. The collector counts objects and not their bytes; forty refused bodies of 8 MiB waited for
it where 256 MiB are the limit.
"""

from __future__ import annotations


def release(error: BaseException) -> None:
    """Forget where a handled error came from and what caused it; its message stays.

    Frames are let go and not cleared: an error that several requests share may have passed frames
    that are suspended.
    """
    following: BaseException | None = error
    while following is not None:
        cause = following.__cause__ or following.__context__
        following.__traceback__ = following.__cause__ = following.__context__ = None
        following = cause
