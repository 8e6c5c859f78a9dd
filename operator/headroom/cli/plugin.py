"""`kubectl headroom`: the same commands as a plugin, and their completion as kubectl asks for it.

kubectl runs `kubectl-headroom` for the command, and `kubectl_complete-headroom` with the words so
far for its completion.
"""

from __future__ import annotations

import os
import shlex
import sys
from collections.abc import Mapping, Sequence

from headroom.cli.main import start

NO_FILES = ":4"
"""What ends the answer: of what cobra calls directives, the one that offers no file names."""


def main() -> None:
    """Run a command under the name by which kubectl's user knows it."""
    start("kubectl headroom")


def complete() -> None:
    """Print the words that may come next, one a line; the last argument is the word begun."""
    os.environ |= asked(sys.argv[1:])
    try:
        start("headroom")
    finally:
        print(NO_FILES)


def asked(given: Sequence[str]) -> Mapping[str, str]:
    """Give the environment in which a shell asks for the next word after these."""
    words = ["headroom", *(given or [""])]
    return {
        "_HEADROOM_COMPLETE": "complete_bash",
        "COMP_WORDS": shlex.join(words),
        "COMP_CWORD": str(len(words) - 1),
    }
