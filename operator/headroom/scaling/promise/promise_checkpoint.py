"""The checkpoint of values learned from misses: margin, risk level, error budget and reserve."""

from __future__ import annotations

from headroom.scaling.promise.error_budget import ErrorBudget
from headroom.scaling.promise.margin import LARGEST, Margin
from headroom.scaling.promise.reserve import Reserve
from headroom.scaling.promise.risk import Risk
from headroom.scaling.values.checkpoint_numbers import MOST_COUNTED, Checkpoint, numbers_of, short


def to_checkpoint(
    margin: Margin, risk: Risk, budget: ErrorBudget, reserve: Reserve
) -> dict[str, object]:
    """Return the checkpoint of these four values as JSON values."""
    numbers = (margin.beta, risk.level, budget.late, budget.ended)
    return {
        "promise": [short(number) for number in numbers],
        "reserve": [short(reserve.remaining)],
    }


def from_checkpoint(checkpoint: Checkpoint) -> tuple[Margin, Risk, ErrorBudget, Reserve]:
    """Return the values that `to_checkpoint` saved; raise ValueError with rule and value."""
    beta, level, late, ended = _promise(checkpoint)
    budget = ErrorBudget(late=late, ended=ended)
    return Margin(beta=beta), Risk(level=level), budget, _reserve(checkpoint)


def _promise(checkpoint: Checkpoint) -> tuple[float, float, float, float]:
    """Read margin, risk level and the hour's misses; none of them in an older checkpoint."""
    if "promise" not in checkpoint:
        return 0.0, 0.0, 0.0, 0.0
    numbers = numbers_of(checkpoint, "promise")
    if len(numbers) != 4:
        rule = "a margin, a risk level, late and ended requests"
        raise ValueError(f"checkpoint promise must hold {rule}; got {numbers}")
    beta, level, late, ended = numbers
    if beta > LARGEST or level > 1.0 or not late <= ended <= MOST_COUNTED:
        rule = f"a margin <= {LARGEST:g}, a level <= 1 and late <= ended <= {MOST_COUNTED:g}"
        raise ValueError(f"checkpoint promise must hold {rule}; got {numbers}")
    return beta, level, late, ended


def _reserve(checkpoint: Checkpoint) -> Reserve:
    """Read the remainder of the reserve; from an older checkpoint, the whole reserve."""
    if "reserve" not in checkpoint:
        return Reserve()
    numbers = numbers_of(checkpoint, "reserve")
    if len(numbers) != 1 or numbers[0] > 1.0:
        raise ValueError(f"checkpoint reserve must hold one number <= 1; got {numbers}")
    return Reserve(remaining=numbers[0])
