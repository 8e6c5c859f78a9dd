"""`python -m chart`: write the files copied from deploy/base, and the values table."""

from __future__ import annotations

import typer

from chart.shared import contents


def write() -> None:
    """Write what the chart shares with deploy/base, and its table of values."""
    for path, text in contents().items():
        path.write_text(text)


if __name__ == "__main__":
    typer.run(write)
