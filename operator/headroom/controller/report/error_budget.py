"""The error budget: in which share of one-minute windows the latency SLO was met. Pure.

A minute without a completed request, or without fresh metrics throughout, counts neither as met nor
as missed. Budget and burn rate follow the SRE workbook (Beyer et al. 2018, chapter 5) over 28 days,
four of each weekday.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from headroom.scaling.values.policy import Policy
from headroom.scaling.values.signals import Freshness
from headroom.scaling.windows.histogram import percentile, undecided
from headroom.scaling.windows.sliding_windows import Windows
from headroom.scaling.windows.window_totals import WindowTotal

MINUTE_S = 60.0
PERIOD_DAYS = 28
_MINUTES_A_DAY = 1440
_MINUTES_A_PERIOD = PERIOD_DAYS * _MINUTES_A_DAY
_RECENT = 60
"""Minutes of the burn rate."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Day:
    """Requests and misses of a day, in UTC."""

    day: int
    """Days since the epoch."""
    kept: int = 0
    missed: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class ErrorBudget:
    """The minutes of the last 28 days that count, by day, and those of the last hour by minute."""

    minute: int | None = None
    """The last minute that was judged, in minutes since the epoch; None before the first."""
    days: tuple[Day, ...] = ()
    """Oldest first."""
    recent_kept: int = 0
    recent_missed: int = 0
    """Bit n is the minute n before the last one."""

    def judge(self, minute: int, kept: bool | None) -> ErrorBudget:
        """Process a minute that has ended; None: it does not count. It is judged once.

        A last minute that has not ended yet comes from a clock that was ahead, this one or another
        leader's. It does not count: the days after this one are dropped, and counting continues. A
        clock may step back by one minute.
        """
        if self.minute is not None and self.minute - 1 <= minute <= self.minute:
            return self
        passed = _RECENT if self.minute is None else max(1, min(_RECENT, minute - self.minute))
        mask = (1 << _RECENT) - 1
        return ErrorBudget(
            minute=minute,
            days=_counted(self.days, minute // _MINUTES_A_DAY, kept),
            recent_kept=(self.recent_kept << passed) & mask | (kept is True),
            recent_missed=(self.recent_missed << passed) & mask | (kept is False),
        )

    @property
    def kept(self) -> int:
        """Minutes of the period in which the percentile held."""
        return sum(day.kept for day in self.days)

    @property
    def missed(self) -> int:
        """Minutes of the period in which it did not."""
        return sum(day.missed for day in self.days)

    @property
    def attainment(self) -> float | None:
        """Share of the minutes that count in which it held; None while none counts."""
        counted = self.kept + self.missed
        return self.kept / counted if counted else None

    def remaining(self, objective: float) -> float:
        """Return the share of the period's budget that is left; negative when overspent.

        Worked: 0.99 allows 403.2 of 40 320 minutes; 100 missed leave 0.752.
        """
        return 1 - self.missed / ((1 - objective) * _MINUTES_A_PERIOD)

    def burn_rate(self, objective: float) -> float | None:
        """Return how many times too fast the last hour spent; None where no minute of it counts.

        Worked: 0.99, 6 of 60 minutes missed: 10, the whole budget in 2.8 days.
        """
        missed = self.recent_missed.bit_count()
        counted = missed + self.recent_kept.bit_count()
        return missed / counted / (1 - objective) if counted else None

    def to_checkpoint(self) -> dict[str, object]:
        """Return the checkpoint for a restart as JSON values; below 600 bytes."""
        return {
            "minute": self.minute,
            "recent": [self.recent_kept, self.recent_missed],
            "days": [[day.day, day.kept, day.missed] for day in self.days],
        }

    @classmethod
    def from_checkpoint(cls, checkpoint: object) -> ErrorBudget:
        """Read a checkpoint of `to_checkpoint`; raise ValueError for anything else."""
        if not isinstance(checkpoint, Mapping):
            raise ValueError(f"errorBudget must be an object; got {checkpoint!r:.80}")
        minute, days = checkpoint.get("minute"), checkpoint.get("days")
        if minute is not None:
            (minute,) = _whole([minute], 1, "minute")
        kept, missed = _whole(checkpoint.get("recent"), 2, "recent")
        if not isinstance(days, list) or len(days) > PERIOD_DAYS:
            raise ValueError(f"errorBudget days must be at most {PERIOD_DAYS}; got {days!r:.80}")
        rows = [_whole(row, 3, "days") for row in days]
        return cls(
            minute=minute,
            recent_kept=kept,
            recent_missed=missed,
            days=tuple(Day(day=row[0], kept=row[1], missed=row[2]) for row in rows),
        )


def judged(
    budget: ErrorBudget,
    policy: Policy,
    windows: Windows,
    freshness: Freshness,
    now_s: float,
    *,
    tokens_missed: bool = False,
) -> ErrorBudget:
    """Process the minute that has ended since the last tick, if one has.

    A minute in which a token SLO was missed was missed.

    Ticks that are more than a minute apart leave minutes out.
    """
    minute = int(now_s // MINUTE_S)
    ago_s = now_s - minute * MINUTE_S
    watched_s = windows.watched_s(now_s, MINUTE_S + ago_s)
    kept = None
    if freshness is Freshness.FRESH and watched_s >= MINUTE_S + ago_s:
        total = windows.total(MINUTE_S, ago_s=ago_s)
        kept = held(windows.bounds_s, total, policy.latency_percentile, policy.latency_target_s)
        kept = kept and not tokens_missed
    return budget.judge(minute - 1, kept)


def held(
    bounds_s: tuple[float, ...], minute: WindowTotal, ratio: float, target_s: float
) -> bool | None:
    """Return whether a minute's percentile was within the target.

    None where no request ended, or where the histogram cannot tell.
    """
    if undecided(bounds_s, minute.latency, minute.missed, ratio, target_s) is not None:
        return None
    found_s = percentile(bounds_s, minute.latency, minute.missed, ratio)
    return None if found_s is None else found_s <= target_s


def _counted(days: tuple[Day, ...], today: int, kept: bool | None) -> tuple[Day, ...]:
    days = tuple(day for day in days if today - PERIOD_DAYS < day.day <= today)
    if kept is None:
        return days
    last = days[-1] if days and days[-1].day == today else Day(day=today)
    before = tuple(day for day in days if day.day != today)
    now = Day(day=today, kept=last.kept + kept, missed=last.missed + (not kept))
    return (*before, now)


def _whole(values: object, length: int, key: str) -> list[int]:
    if isinstance(values, list) and len(values) == length:
        numbers = [one for one in values if type(one) is int and one >= 0]
        if len(numbers) == length:
            return numbers
    raise ValueError(f"errorBudget {key} must hold {length} whole numbers >= 0; got {values!r:.80}")
