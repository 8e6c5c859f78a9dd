"""Collects a request's deliveries into one body, or an exception."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from headroom_server.errors import FailedError, QueueFullError, RequestError
from headroom_server.generation.values import Delivery
from headroom_server.openai_api.answers.choice_parts import (
    UNWRITABLE,
    AnswerContext,
    ChoiceParts,
    usage_of,
)
from headroom_server.openai_api.answers.encoding import Part, merged
from headroom_server.openai_api.answers.unread import (
    CHARACTER_BYTES,
    COUNTED_BYTES,
    MOST_PARTS,
    PART_BYTES,
    WithheldText,
    held_bytes,
    probabilities_of,
    too_large,
)
from headroom_server.web.shared_bound import Reservation


class CollectedAnswer:
    """Collects all choices for one body; `unread` counts the bytes until the last token.

    `on_full` is called before it ends for want of memory: the engine may be done at the same time.
    """

    def __init__(
        self,
        context: AnswerContext,
        unread: Reservation,
        withheld: Reservation,
        on_full: Callable[[QueueFullError], None],
    ) -> None:
        self._context = context
        self._on_full = on_full
        self._unread = unread
        self._withheld = WithheldText(withheld, len(context.requests))
        self._uncounted = CHARACTER_BYTES * sum(map(len, context.echoes))
        self.probabilities = 0
        """Tokens and their alternatives, as the body reports them."""
        self._choices = [ChoiceParts(context, index) for index in range(len(context.requests))]
        self._parts: list[list[Part]] = [[] for _ in self._choices]
        self._counted = [0] * len(self._choices)
        """Parts of each choice that count as objects, not only as text."""
        self._left = len(self._choices)
        self.done: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    def receive(self, index: int, delivery: Delivery) -> None:
        """Take a delivery of a choice."""
        if self.done.done():
            return
        try:
            self._take(index, delivery)
        except QueueFullError as error:
            self._on_full(error)
            self.done.set_exception(error)
        except RequestError as error:
            self.done.set_exception(error)
        except Exception:
            self.done.set_exception(FailedError(UNWRITABLE))
            raise

    def _take(self, index: int, delivery: Delivery) -> None:
        choice = self._choices[index]
        part = choice.push(delivery)
        if choice.withholds:
            self._withheld.count(index, choice.withheld)
        if part is None:
            return
        parts = self._parts[index]
        parts.append(part)
        if len(parts) >= MOST_PARTS and not part.tokens:  # one string instead of many objects
            self._parts[index] = [merged(parts)]
        self._uncounted += held_bytes(part)
        if self._counted[index] < MOST_PARTS:
            self._counted[index] += 1
            self._uncounted += PART_BYTES
        self.probabilities += probabilities_of(part)
        if self._uncounted > COUNTED_BYTES:
            self._count()
        if choice.done:
            self._left -= 1
            if not self._left and not self.done.done():
                self.done.set_result(None)

    def _count(self) -> None:
        try:
            self._unread.grow(self._uncounted)
        except QueueFullError:
            raise too_large() from None
        self._uncounted = 0

    def close(self) -> None:
        """Count nothing any more."""
        self._unread.close()
        self._withheld.close()

    def body(self) -> bytes:
        """Return the body."""
        parts = [
            merged(parts, echo)
            for parts, echo in zip(self._parts, self._context.echoes, strict=True)
        ]
        return self._context.form.whole(parts, usage_of(self._context, self._choices))
