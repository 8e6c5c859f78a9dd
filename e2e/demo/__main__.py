"""`python -m demo`: replay a recorded workload, report; exits with 0 if all checks hold."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from demo import plan
from demo.performing import add_options, perform
from demo.plan import Plan
from demo.replay import Replay

DEFAULT_REPORT = Path("demo-report")


def main(argv: Sequence[str] | None = None) -> int:
    """Run the demo and return its exit status."""
    options = _parser().parse_args(argv)
    wanted = Plan(duration_s=options.duration, keep=options.keep)
    return perform(Replay(wanted), options.report)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="demo", description=__doc__, allow_abbrev=False)
    parser.add_argument(
        "--duration",
        type=_duration_s,
        default=plan.DURATION_S,
        metavar="S",
        help="seconds of the recording to replay; a scale-down needs at least %(default)g",
    )
    add_options(parser, DEFAULT_REPORT)
    return parser


def _duration_s(text: str) -> float:
    try:
        value_s = float(text)
    except ValueError:
        value_s = 0.0
    if not plan.SHORTEST_S <= value_s <= plan.LONGEST_S:
        raise argparse.ArgumentTypeError(
            f"seconds from {plan.SHORTEST_S:g} to {plan.LONGEST_S:g}; got {text!r}"
        )
    return value_s


if __name__ == "__main__":
    sys.exit(main())
