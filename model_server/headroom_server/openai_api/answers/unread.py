"""Counts the memory of answers that wait for their last token, or for their reader. Pure."""

from __future__ import annotations

from headroom_server.errors import QueueFullError
from headroom_server.openai_api.answers.encoding import Part
from headroom_server.web.shared_bound import Reservation

CHARACTER_BYTES = 4
PART_BYTES = 256
TOKEN_BYTES, ALTERNATIVE_BYTES = 320, 128
"""Memory of a token with its probability that waits to be sent, and of each alternative to it."""
MOST_PARTS = 64
FEW_PROBABILITIES = 4096
"""Number that is encoded at once, in about 10 ms; more would delay other requests."""
COUNTED_BYTES = 16 * 1024
"""Step in which collected bytes are counted: counting every token would take 0.5 us."""


def too_large() -> QueueFullError:
    """Return the error of an answer that there is no memory for."""
    return QueueFullError("answers that are incomplete are too large; retry", retry_after_s=1)


def held_bytes(part: Part) -> int:
    """Return the memory of a part that waits."""
    tokens = part.tokens
    alternatives = len(tokens[0].alternatives) if tokens else 0
    each = TOKEN_BYTES + ALTERNATIVE_BYTES * alternatives
    size = CHARACTER_BYTES * len(part.text) + each * len(tokens)
    for _, _, call in part.calls:
        size += PART_BYTES + CHARACTER_BYTES * (len(call.name) + len(call.arguments))
    return size


def probabilities_of(part: Part) -> int:
    """Return how many probabilities a part reports: of its tokens and their alternatives."""
    return len(part.tokens) * (1 + len(part.tokens[0].alternatives)) if part.tokens else 0


class WithheldText:
    """Counts the text that waits for the end of a call, also of a client that reads."""

    def __init__(self, reservation: Reservation, choices: int) -> None:
        self._reservation = reservation
        self._characters = [0] * choices
        self._uncounted = 0

    def count(self, index: int, characters: int) -> None:
        """Count that this many characters of a choice wait now.

        Raises:
            QueueFullError: they are too many.
        """
        self._uncounted += CHARACTER_BYTES * (characters - self._characters[index])
        self._characters[index] = characters
        if self._uncounted > COUNTED_BYTES:
            try:
                self._reservation.grow(self._uncounted)
            except QueueFullError:
                raise too_large() from None
        elif self._uncounted < -COUNTED_BYTES:
            self._reservation.shrink(-self._uncounted)
        else:
            return
        self._uncounted = 0

    def close(self) -> None:
        """Count nothing any more."""
        self._reservation.close()
