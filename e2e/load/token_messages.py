"""The messages of the load of tokens: one compact JSON object per line.

| kind      | said                                                             |
|-----------|------------------------------------------------------------------|
| began     | once: when the first instant is due, and what is promised          |
| answer    | per request, when it has ended                                   |
| concluded | at the very end                                                  |
"""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from load.log_lines import body_of
from load.outcomes import Outcome

LATE_SHARE = 0.99
DIGITS = 6


@dataclass(frozen=True, slots=True, kw_only=True)
class Promises:
    """Promises that an answer has to keep."""

    first_token_s: float = math.inf
    output_token_s: float = math.inf


@dataclass(frozen=True, slots=True, kw_only=True)
class Began:
    """The load begins."""

    unix_s: float
    """Wall clock at the first instant, to compare this run with other records."""
    requests: int
    duration_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """One request's end. Times run from the instant at which it was due."""

    number: int
    due_s: float
    late_s: float
    """Delay after its instant with which the generator began to send it."""
    outcome: Outcome
    detail: str = ""
    prompt_tokens: int
    output_tokens: int
    """Tokens as the server counted them."""
    first_token_s: float | None = None
    ended_s: float | None = None
    """The last token."""

    @property
    def output_token_s(self) -> float | None:
        """Time per output token after the first; None where there is no such token."""
        if self.first_token_s is None or self.ended_s is None or self.output_tokens < 2:
            return None
        return (self.ended_s - self.first_token_s) / (self.output_tokens - 1)

    def keeps(self, promises: Promises) -> bool:
        """Return whether the answer is right and in time."""
        return (
            self.outcome is Outcome.OK
            and (self.first_token_s or 0.0) <= promises.first_token_s
            and (self.output_token_s or 0.0) <= promises.output_token_s
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Concluded:
    """The whole run."""

    requests: int
    """Requests that were due; each has exactly one outcome."""
    outcomes: dict[str, int]
    within: int
    """Right answers that kept every promise."""
    output_tokens: int
    seconds: float
    """From the first instant to the end of the last answer."""
    first_token_p95_s: float | None
    """+Inf where requests without an answer reach into the percentile."""
    output_token_p95_s: float | None
    late_p99_s: float

    @property
    def attainment(self) -> float | None:
        """Share of all requests that kept every promise; None without requests."""
        return self.within / self.requests if self.requests else None


def concluded(answers: Sequence[Answer], promises: Promises) -> Concluded:
    """Sum up a run."""
    outcomes = Counter(one.outcome.value for one in answers)
    return Concluded(
        requests=len(answers),
        outcomes=dict(sorted(outcomes.items())),
        within=sum(one.keeps(promises) for one in answers),
        output_tokens=sum(one.output_tokens for one in answers),
        seconds=max((one.due_s + (one.ended_s or 0.0) for one in answers), default=0.0),
        first_token_p95_s=first_token_s(answers, 0.95),
        output_token_p95_s=output_token_s(answers, 0.95),
        late_p99_s=quantile([one.late_s for one in answers], LATE_SHARE) or 0.0,
    )


def first_token_s(answers: Sequence[Answer], share: float) -> float | None:
    """Return what this share of the answers stayed within; a request without one never came."""
    right = (one.first_token_s if one.outcome is Outcome.OK else None for one in answers)
    return quantile([math.inf if each is None else each for each in right], share)


def output_token_s(answers: Sequence[Answer], share: float) -> float | None:
    """Return the same of the time per output token; answers of one token have none."""
    long = [one for one in answers if one.outcome is not Outcome.OK or one.output_tokens > 1]
    right = (one.output_token_s if one.outcome is Outcome.OK else None for one in long)
    return quantile([math.inf if each is None else each for each in right], share)


def quantile(values: Sequence[float], share: float) -> float | None:
    """Return the smallest value that this share does not exceed; None without values."""
    if not values:
        return None
    return sorted(values)[max(0, math.ceil(share * len(values) - 1e-9) - 1)]


TokenMessage = Began | Answer | Concluded
KINDS: dict[str, type[TokenMessage]] = {"began": Began, "answer": Answer, "concluded": Concluded}


def write(message: TokenMessage) -> str:
    """Return one line, without its end."""
    fields: dict[str, Any] = {"kind": type(message).__name__.lower()}
    for key, value in asdict(message).items():
        fields[key] = round(value, DIGITS) if isinstance(value, float) else value
    return json.dumps(fields, separators=(",", ":"))


def read(line: str) -> TokenMessage | None:
    """Read one line; None for a line that is no message.

    Raises:
        ValueError: a message whose fields are not those of its kind.
    """
    body = body_of(line, KINDS)
    if body is None:
        return None
    kind = body.pop("kind")
    try:
        if "outcome" in body:
            body["outcome"] = Outcome(body["outcome"])
        return KINDS[kind](**body)
    except TypeError as error:
        raise ValueError(f"a message of kind {kind} has unknown fields: {error}") from error


def read_all(text: str) -> list[TokenMessage]:
    """All messages of a log, in order; a last line that was cut off is left out."""
    return [one for one in map(read, text.splitlines()) if one is not None]
