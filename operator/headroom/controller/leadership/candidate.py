"""One candidate for a Lease: its observations, writes and next step. Pure.

The algorithm is client-go's. A follower remembers when, by its own clock, the record last changed,
and takes over once that is longer ago than the record's duration: the clocks of two machines are
never compared. Every write is a compare-and-swap on the version that was read.

The leader counts from *before* it sent its last successful renewal, and stops `renew_within_s`
later. Followers count from after they saw that renewal, and wait `duration_s`: so even clocks whose
rates differ by that ratio (12 s to 8 s) never give two leaders.

Times are seconds on a clock of this machine that continues while the machine sleeps.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from headroom.controller.leadership.record import LeaseRecord


@dataclass(frozen=True, slots=True, kw_only=True)
class LeaseTimes:
    """Times of a lease. A crashed leader is replaced after about duration_s + retry_s."""

    duration_s: float = 12.0
    renew_within_s: float = 8.0
    retry_s: float = 2.0

    def __post_init__(self) -> None:
        """Reject times at which a healthy leader would stop, or two would lead."""
        if not 0.0 < 2.0 * self.retry_s <= self.renew_within_s < self.duration_s:
            raise ValueError(
                "a lease must have 2 x retry <= renew within < duration; got "
                f"{self.retry_s:g} s, {self.renew_within_s:g} s, {self.duration_s:g} s"
            )

    @property
    def request_s(self) -> float:
        """Deadline of each request: a renewal that hangs leaves time for another one."""
        return self.renew_within_s / 2.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidate:
    """Begins as a follower that has seen nothing."""

    identity: str
    """Not used by any other process, nor by an earlier one."""
    times: LeaseTimes = LeaseTimes()
    seen: LeaseRecord | None = None
    """Lease as last read or written; None: no such Lease, or not read yet."""
    seen_s: float = 0.0
    """Time when it was first seen with this content."""
    current: bool = False
    """No write since then has an unknown outcome."""
    renewed_s: float | None = None
    """Time when the last renewal known to have succeeded was sent; None while not leading."""
    term: int = 0
    """Counts how often it took the lease from another holder, or from none."""

    @property
    def holds(self) -> bool:
        """Whether no other holder is known; the lease may have expired."""
        return self.renewed_s is not None

    @property
    def must_read(self) -> bool:
        """A leader that knows the record renews without reading; all others read first."""
        return not (self.holds and self.current)

    def remaining_s(self, now_s: float) -> float:
        """Return the time for which it may still write; 0 where it does not lead."""
        if self.renewed_s is None or now_s < self.renewed_s:
            return 0.0
        return max(0.0, self.renewed_s + self.times.renew_within_s - now_s)

    def with_record(self, record: LeaseRecord | None, now_s: float) -> Candidate:
        """Process the Lease that was read; None: there is no such Lease."""
        changed = self.seen is None or record != self.seen
        mine = record is not None and record.holder == self.identity
        return replace(
            self,
            seen=record,
            seen_s=now_s if changed else self.seen_s,
            current=True,
            renewed_s=self.renewed_s if mine else None,
        )

    def claim(self, now_s: float, stamp: str) -> LeaseRecord | None:
        """Return the record that takes or renews the lease; None while another holder's is valid.

        `stamp` is the wall-clock time that the Lease shows.
        """
        old = self.seen
        if old is not None and old.holder == self.identity:
            return replace(old, duration_s=self.times.duration_s, renewed=stamp)
        if old is not None and old.holder and now_s < self.seen_s + old.duration_s:
            return None
        return LeaseRecord(
            holder=self.identity,
            duration_s=self.times.duration_s,
            transitions=0 if old is None else old.transitions + 1,
            acquired=stamp,
            renewed=stamp,
            note="" if old is None else old.note,
            version="" if old is None else old.version,
        )

    def with_written(self, record: LeaseRecord, asked_s: float, now_s: float) -> Candidate:
        """Note that its claim of `asked_s` was stored."""
        return replace(
            self,
            seen=record,
            seen_s=now_s,
            current=True,
            renewed_s=asked_s,
            term=self.term if self.holds else self.term + 1,
        )

    def with_unknown_outcome(self) -> Candidate:
        """Note that a write was rejected, or that its outcome is unknown."""
        return replace(self, current=False)

    def release_record(self, stamp: str) -> LeaseRecord | None:
        """Return the record that releases the lease; None if it may be another operator's."""
        if self.seen is None or not self.current or self.seen.holder != self.identity:
            return None
        return replace(self.seen, holder="", duration_s=1.0, renewed=stamp)

    def stepped_down(self) -> Candidate:
        """Stop leading, whatever the record says."""
        return replace(self, renewed_s=None)

    def pause_s(self, now_s: float) -> float:
        """Return the time until it should act again."""
        if self.renewed_s is not None:
            if not self.current:
                return self.times.retry_s / 4.0
            due_s = self.renewed_s + self.times.retry_s
            return max(0.0, min(due_s - now_s, self.times.retry_s))
        if self.seen is None or not self.seen.holder:
            return self.times.retry_s
        runs_out_s = self.seen_s + self.seen.duration_s
        return min(self.times.retry_s, max(self.times.retry_s / 4.0, runs_out_s - now_s))
