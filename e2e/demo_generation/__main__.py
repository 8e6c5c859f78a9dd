"""`python -m demo_generation`: steps of load on generated text; exits with 0 if all checks hold."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from demo.performing import add_options, perform
from demo_generation import plan
from demo_generation.show import Writer

DEFAULT_REPORT = Path("demo-generation-report")


def main(argv: Sequence[str] | None = None) -> int:
    """Run the demo and return its exit status."""
    parser = argparse.ArgumentParser(
        prog="demo_generation", description=__doc__, allow_abbrev=False
    )
    add_options(parser, DEFAULT_REPORT)
    options = parser.parse_args(argv)
    return perform(Writer(plan.scene(keep=options.keep)), options.report)


if __name__ == "__main__":
    sys.exit(main())
