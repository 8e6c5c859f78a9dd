"""`python -m generation_study`: the study of autoscalers of generating services."""

from __future__ import annotations

import sys

from rich.console import Console

from generation_study import speed


def main(arguments: list[str] | None = None) -> int:
    """Perform what is asked; return the exit status."""
    given = sys.argv[1:] if arguments is None else arguments
    console = Console(highlight=False)
    if given[:1] == ["speed"]:
        return speed.main(console)
    if given[:1] == ["compile"]:
        speed.compiled()
        return 0
    console.print("usage: python -m generation_study {compile,speed}")
    return 2


if __name__ == "__main__":
    sys.exit(main())
