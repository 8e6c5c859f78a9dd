"""Outcomes of a request for its client, and the check of an answer.

| outcome     | seen by the client                                              | accepted? |
|-------------|-----------------------------------------------------------------|-----------|
| ok          | 200, and the answer is right                                    | yes       |
| wrong       | 200, and the answer is not the one to this request              | yes       |
| refused     | 429 or 503: try again later                                     | no        |
| expired     | 504: its deadline passed before its turn                        | reported  |
| failed      | any other status                                                | reported  |
| lost        | sent, and then no complete answer: closed, reset, or timed out  | perhaps   |
| unreachable | no connection could be made                                     | no        |
| unsent      | the generator's own bound on requests in flight held it back    | no        |

Everything but ok is a miss. Only silence is loss: a client that got a status knows what happened.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum


class Outcome(StrEnum):
    """End of a request."""

    OK = "ok"
    WRONG = "wrong"
    REFUSED = "refused"
    EXPIRED = "expired"
    FAILED = "failed"
    LOST = "lost"
    UNREACHABLE = "unreachable"
    UNSENT = "unsent"


@dataclass(frozen=True, slots=True)
class FirstTry:
    """End of a request's first try, and its duration."""

    outcome: Outcome
    took_s: float


@dataclass(frozen=True, slots=True)
class Ending:
    """End of a request for the client."""

    outcome: Outcome
    detail: str = ""
    retried: bool = False
    """Whether a try was sent again because an idle connection turned out to be closed."""
    tries: int = 1
    first: FirstTry | None = None
    """None: there was one try, and it ended as the request."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """One request's end. `latency_s` runs from the instant at which the trace wanted it sent."""

    due_s: float
    latency_s: float
    outcome: Outcome
    late_s: float = 0.0
    """Delay after its instant with which the generator began to send it."""
    retried: bool = False
    """Whether it was sent again after an idle connection turned out to be closed."""
    detail: str = ""
    """For what did not go well: status or error, in the client's words."""
    tries: int = 1


def of_status(status: int) -> Outcome:
    """The outcome of an answer without looking into it."""
    match status:
        case 200:
            return Outcome.OK
        case 429 | 503:
            return Outcome.REFUSED
        case 504:
            return Outcome.EXPIRED
    return Outcome.FAILED


def question(number: int, row_size: int, tensor: str) -> dict[str, object]:
    """A request body (Open Inference Protocol v2) that no other request of this run has.

    The row counts up from the request's number, so its sum shows whose answer it is.
    """
    row = [float(number + step) for step in range(row_size)]
    return {
        "id": str(number),
        "inputs": [{"name": tensor, "datatype": "FP64", "shape": [1, row_size], "data": row}],
    }


def is_right(number: int, row_size: int, answer: object) -> bool:
    """Return whether this is the emulated model's answer: the exact sum of the row."""
    expected = float(row_size * number + row_size * (row_size - 1) // 2)
    match answer:
        case {"outputs": [{"data": [float() | int() as total]}, *_]}:
            return float(total) == expected
    return False


def input_of(metadata: Mapping[str, object]) -> tuple[str, int]:
    """Name and row size of a served model's one numeric input, from its v2 metadata.

    Raises:
        ValueError: the model takes something else.
    """
    match metadata.get("inputs"):
        case [{"name": str(name), "datatype": "FP64", "shape": [*shape]}] if _is_row(shape):
            return name, int(shape[-1])
    raise ValueError(
        f"the model must have one FP64 input of shape [-1, n]; got {metadata.get('inputs')!r}"
    )


def _is_row(shape: Sequence[object]) -> bool:
    match shape:
        case [-1, int(size)] if size > 0:
            return True
    return False
