"""The requests of one run of the load generator: when each was due, and how it ended."""

from __future__ import annotations

from collections.abc import Sequence

from serverbench.generator.exchange import Answers, Status


class RequestLog:
    """Parallel lists, one entry per request; a request is lost until it has ended."""

    def __init__(self, due_s: Sequence[float], kinds: Sequence[int]) -> None:
        self.due_s, self.kinds = list(due_s), list(kinds)
        self.took_s: list[float | None] = [None] * len(due_s)
        self.statuses: list[int] = [Status.LOST] * len(due_s)
        self.late_s: list[float] = []
        """Delay of each, in the order of sending."""
        self.retried = 0

    def add(self, due_s: float, kind: int) -> int:
        """Append a request, and return its number."""
        self.due_s.append(due_s)
        self.kinds.append(kind)
        self.took_s.append(None)
        self.statuses.append(Status.LOST)
        return len(self.due_s) - 1

    def answers(self, *, cpu_s: float, connections: int) -> Answers:
        """Return the result, with what the generator itself used."""
        late_s = sorted(self.late_s) or [0.0]
        return Answers(
            due_s=tuple(self.due_s),
            took_s=tuple(self.took_s),
            statuses=tuple(self.statuses),
            kinds=tuple(self.kinds),
            cpu_s=cpu_s,
            late_p99_s=late_s[int(0.99 * (len(late_s) - 1))],
            retried=self.retried,
            connections=connections,
            late_s=tuple(self.late_s),
        )
