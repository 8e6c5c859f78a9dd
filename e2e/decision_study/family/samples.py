"""Options of the commands that run a sample of *develop*, and the names of its members."""

from __future__ import annotations

import argparse

from decision_study.family.members import DEVELOP, MEMBERS


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the options that choose a sample, and the number of processes."""
    add = parser.add_argument
    add("--sample", type=int, default=10, metavar="N", help="the first N of them (10)")
    add("--every", type=int, default=1, metavar="N", help="only every Nth workload (1)")
    add("--begin", type=int, default=0, metavar="K", help="after the first K workloads (0)")
    add("--jobs", "-j", type=int, default=2, metavar="N", help="worker processes (2)")


def names(given: argparse.Namespace) -> list[str]:
    """Return the members of *develop* that these options choose."""
    every = [member.name for member in MEMBERS.values() if member.set == DEVELOP]
    return every[given.begin :: given.every][: given.sample]
