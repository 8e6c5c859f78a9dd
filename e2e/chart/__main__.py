"""`python -m chart`: write the copies of deploy/base, and the descriptions of the values."""

from __future__ import annotations

import typer

from chart.shared import contents


def write() -> None:
    """Write what the chart shares with deploy/base, and the descriptions of its values."""
    for path, text in contents().items():
        path.write_text(text)


if __name__ == "__main__":
    typer.run(write)
