"""The command line, parsed into the measurements to take."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import dataclass

from serverbench.experiments.scale import FULL, QUICK, QUICK_PEERS, Scale
from serverbench.peer_servers import PEER_NAMES
from serverbench.records import Case
from serverbench.servers import BARE, OURS

SOAK_MINUTES = 10.0
USUAL = tuple(case for case in Case if case is not Case.SOAK)


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """The options of the command line."""

    scale: Scale
    cases: tuple[Case, ...]
    peers: tuple[str, ...]
    soak_minutes: float
    fresh: bool
    report_only: bool

    @property
    def servers(self) -> tuple[str, ...]:
        """Ours and the yardstick first."""
        return (OURS, BARE, *self.peers)


def parsed(argv: Sequence[str] | None) -> Options:
    """Parse the arguments; end the process with status 2 and the rule that one breaks."""
    given = _parser().parse_args(argv)
    cases = given.only or ((Case.SOAK,) if given.soak is not None else USUAL)
    return Options(
        scale=QUICK if given.quick else FULL,
        cases=tuple(cases),
        peers=(QUICK_PEERS if given.quick else PEER_NAMES) if given.peers is None else given.peers,
        soak_minutes=SOAK_MINUTES if given.soak is None else given.soak,
        fresh=given.fresh,
        report_only=given.report_only,
    )


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="serverbench",
        allow_abbrev=False,
        description="Compare the model server with other servers on this machine."
        " Results are stored in .bench/ and reused while the sources are unchanged.",
    )
    add = parser.add_argument
    add("--quick", action="store_true", help="one short round, with Triton and mosec: 5 min")
    add("--only", type=_cases, metavar="CASE,...", help=f"of {', '.join(Case)}")
    add(
        "--peers",
        type=_peers,
        metavar="A,B",
        help=f"one or more of {', '.join(PEER_NAMES)}, or none",
    )
    add(
        *("--soak",),
        type=_minutes,
        metavar="MINUTES",
        nargs="?",
        const=SOAK_MINUTES,
        help="only the soak, for 10 min or MINUTES",
    )
    add("--fresh", action="store_true", help="measure everything again")
    add("--report-only", action="store_true", help="report existing results without measuring")
    return parser


def _cases(text: str) -> tuple[Case, ...]:
    known = {case.value: case for case in Case}
    for name in text.split(","):
        if name not in known:
            raise argparse.ArgumentTypeError(f"must be one of {', '.join(known)}; got {name!r}")
    return tuple(known[name] for name in text.split(","))


def _peers(text: str) -> tuple[str, ...]:
    if text == "none":
        return ()
    for name in text.split(","):
        if name not in PEER_NAMES:
            known = ", ".join(PEER_NAMES)
            raise argparse.ArgumentTypeError(f"must be one of {known}, or none; got {name!r}")
    return tuple(dict.fromkeys(text.split(",")))


def _minutes(text: str) -> float:
    try:
        minutes = float(text)
    except ValueError:
        minutes = 0.0
    if not 0.1 <= minutes <= 600.0:
        raise argparse.ArgumentTypeError(f"must be minutes from 0.1 to 600; got {text!r}")
    return minutes
