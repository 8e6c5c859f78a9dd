"""Generated telemetry through the production path: text, samples, decision.

What must never happen: a number outside the bounds; an exception; a removal while all replicas are
needed; a removal although a replica had said nothing for longer than a stale sample counts.

In half of the trees the pages are well-formed and wrong: those of one replica, or of all. While all
replicas agree on a wrong figure that a server could have, no observer can know, and removals are
not judged until `FORGOTTEN_S` after it; what one replica reports against the others must remove
nothing at any time.

A decision is a pure function, so sequences share their beginnings: from a state that was reached
once, several go on, each by faults of its own. A sequence is a path through such a tree. Where two
have had the same pages so far, the decision is made once.
"""

from __future__ import annotations

import multiprocessing
import signal
from concurrent.futures import ProcessPoolExecutor

from reliability.telemetry.telemetry_outcome import Outcome
from reliability.telemetry.telemetry_tree import run
from results import Results

BLOCK = 10
"""Trees that are played, and kept, at a time."""
PART = "telemetry"


def run_side_by_side(count: int, workers: int, results: Results | None = None) -> Outcome:
    """Play this many trees in several processes, but those whose outcome is kept."""
    total, left = Outcome(), []
    for start in range(0, count, BLOCK):
        numbers = range(start, min(start + BLOCK, count))
        row = results.get(PART, str(numbers)) if results else None
        if row is None:
            left.append(numbers)
        else:
            total.add(Outcome.of(row))
    pool = ProcessPoolExecutor(
        workers, initializer=signal.signal, initargs=(signal.SIGTERM, signal.SIG_DFL)
    )
    try:
        for numbers, outcome in zip(left, pool.map(run, left), strict=True):
            total.add(outcome)
            if results is not None:
                results.put(PART, str(numbers), outcome.row())
    except BaseException:  # a block may take minutes on a machine that is busy
        for child in multiprocessing.active_children():
            child.terminate()
        raise
    finally:
        pool.shutdown(cancel_futures=True)
    return total
