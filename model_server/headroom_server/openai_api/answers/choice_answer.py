"""Turns one choice's tokens into text that may be sent, until the answer is complete. Pure."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from typing import NamedTuple

from headroom_server.generation.text.stop_strings import StopStrings
from headroom_server.generation.text.tokenizer import Tokenizer
from headroom_server.generation.values import Delivery, FinishReason, SampledToken
from headroom_server.openai_api.bodies.parameters import Choices

ANSWERED = {FinishReason.STOP: "stop", FinishReason.LENGTH: "length"}


_NONE: deque[tuple[int, SampledToken]] = deque(maxlen=0)


class Piece(NamedTuple):
    """Text that may be sent after a delivery."""

    text: str
    tokens: Sequence[SampledToken] = ()
    """The tokens of the text, if their probabilities are reported."""
    finish: str | None = None
    """OpenAI's reason, if the answer is complete."""
    stopped: bool = False
    """It is complete by a stop string, before the engine knows."""


class AnswerText:
    """The text of one choice. Tokens that end it (EOS, stop tokens) are counted and not shown."""

    __slots__ = (
        "_detokenizer",
        "_ends",
        "_include_stop",
        "_read",
        "_reported",
        "_sent",
        "_stops",
        "_unsent",
        "tokens",
    )

    def __init__(self, tokenizer: Tokenizer, choices: Choices, ends: frozenset[int]) -> None:
        self.tokens = 0
        self._detokenizer = tokenizer.detokenizer()
        self._ends = ends
        self._stops = StopStrings(choices.stops) if choices.stops else None
        self._include_stop = choices.include_stop
        self._reported = choices.sampling.logprobs is not None
        self._unsent: deque[tuple[int, SampledToken]] = deque() if self._reported else _NONE
        """Tokens by the position where their text begins."""
        self._read = self._sent = 0

    def push(self, delivery: Delivery) -> Piece:
        """Return the piece that can be sent after a delivery."""
        tokens, reason = delivery.tokens, delivery.finish
        self.tokens += len(tokens)
        if reason is FinishReason.STOP and tokens and tokens[-1].token in self._ends:
            tokens = tokens[:-1]
        text = self._text(tokens)
        if reason is not None:
            text += self._detokenizer.flush()
        stopped = None
        if self._stops is not None:
            text, stopped = self._stops.push(text)
            if stopped is not None and self._include_stop:
                text += stopped
            elif stopped is None and reason is not None:
                text += self._stops.flush()
        if stopped is not None:
            return Piece(text, self._released(len(text), last=False), "stop", reason is None)
        finish = None if reason is None else ANSWERED.get(reason)
        return Piece(text, self._released(len(text), last=reason is not None), finish)

    def _text(self, tokens: Sequence[SampledToken]) -> str:
        push = self._detokenizer.push
        if not self._reported:
            return push([one[0] for one in tokens])
        pieces = []
        for one in tokens:
            self._unsent.append((self._read, one))
            pieces.append(push((one.token,)))
            self._read += len(pieces[-1])
        return "".join(pieces)

    def _released(self, characters: int, *, last: bool) -> Sequence[SampledToken]:
        if not self._reported:
            return ()
        self._sent += characters
        released = []
        while self._unsent and (last or self._unsent[0][0] < self._sent):
            released.append(self._unsent.popleft()[1])
        return released
