"""`kubectl headroom`: the same commands as a kubectl plugin, with completion.

kubectl runs `kubectl-headroom` for a command, and `kubectl_complete-headroom` with the words so far
to complete it.
"""

from __future__ import annotations

import os
import shlex
import sys
from collections.abc import Mapping, Sequence

from headroom.cli.main import start

NO_FILES = ":4"
"""The last line of the answer: cobra's directive to offer no file names."""


def main() -> None:
    """Run a command under the name that the user typed."""
    start("kubectl headroom")


def complete() -> None:
    """Print the possible next words, one per line; the last argument is the unfinished word."""
    os.environ |= asked(sys.argv[1:])
    try:
        start("headroom")
    finally:
        print(NO_FILES)


def asked(given: Sequence[str]) -> Mapping[str, str]:
    """Return the environment with which a shell requests the next word after these."""
    words = ["headroom", *(given or [""])]
    return {
        "_HEADROOM_COMPLETE": "complete_bash",
        "COMP_WORDS": shlex.join(words),
        "COMP_CWORD": str(len(words) - 1),
    }
