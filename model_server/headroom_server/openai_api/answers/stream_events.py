"""The events of one stream: those that open a choice, its parts, the sums, the end. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from headroom_server.openai_api.answers.choice_parts import AnswerContext, ChoiceParts, usage_of
from headroom_server.openai_api.answers.encoding import Part


class StreamEvents:
    """Encodes the parts of all choices of a request, in the order in which they are sent."""

    def __init__(self, context: AnswerContext, choices: Sequence[ChoiceParts]) -> None:
        self._context = context
        self._choices = choices
        self._opened = [False] * len(choices)
        self._usage = context.call.choices.include_usage
        self._each_usage = context.call.choices.continuous_usage

    def part(self, index: int, part: Part) -> bytes:
        """Return the events of a part; before a choice's first part, those that open it."""
        form, usage, opening = self._context.form, None, b""
        if self._each_usage:
            usage = usage_of(self._context, self._choices)
        if not self._opened[index]:
            self._opened[index] = True
            opening = form.opening(index)
            echo = self._context.echoes[index]
            if echo:
                opening += form.plain(index, echo)
        if usage is None and part.finish is None and not part.tokens and not part.calls:
            return opening + form.plain(index, part.text)
        return opening + form.event(index, part, usage)

    def ending(self) -> bytes:
        """Return the bytes after the last part of a complete answer."""
        form = self._context.form
        sums = form.usage_event(usage_of(self._context, self._choices)) if self._usage else b""
        return sums + form.ending
