"""Completions as OpenAI's JSON, and as the events of a stream. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from headroom_server.generation.text.tokenizer import Tokenizer
from headroom_server.generation.values import SampledToken
from headroom_server.openai_api.answers.encoding import AnswerIdentity, JsonForm, Part, finite


class CompletionForm(JsonForm):
    """Completions."""

    kind = chunk_kind = "text_completion"

    def __init__(self, identity: AnswerIdentity, tokenizer: Tokenizer, *, usage: bool) -> None:
        super().__init__(identity, tokenizer, usage=usage)
        self._reported: dict[int, _ReportedText] = {}

    def opening(self, index: int) -> bytes:
        """Return nothing."""
        return b""

    def choice(self, index: int, part: Part) -> dict[str, Any]:
        """Return a choice: events and whole answers have the same."""
        return {
            "index": index,
            "text": part.text,
            "logprobs": self._logprobs(index, part.tokens),
            "finish_reason": part.finish,
        }

    delta = choice

    def _logprobs(self, index: int, tokens: Sequence[SampledToken]) -> Any:
        if not tokens:
            return None
        text = self._reported.get(index)
        if text is None:
            text = self._reported[index] = _ReportedText(self._tokenizer)
        offsets = [text.begin(one.token) for one in tokens]
        return {
            "tokens": [self._name(one.token) for one in tokens],
            "token_logprobs": [finite(one.logprob) for one in tokens],
            "top_logprobs": [self._likeliest(one) for one in tokens],
            "text_offset": offsets,
        }

    def _likeliest(self, one: SampledToken) -> dict[str, float | None]:
        """Return the alternatives and the chosen token; of equal names, the most probable one."""
        named: dict[str, float | None] = {}
        for token, logprob in (*one.alternatives, (one.token, one.logprob)):
            named.setdefault(self._name(token), finite(logprob))
        return named

    def _name(self, token: int) -> str:
        return self._tokenizer.token_bytes(token).decode("utf-8", "replace")


class _ReportedText:
    """Positions of a choice's tokens in its text, over all events of a stream."""

    def __init__(self, tokenizer: Tokenizer) -> None:
        self._detokenizer = tokenizer.detokenizer()
        self._characters = 0

    def begin(self, token: int) -> int:
        """Return where the next token begins: a character may be several tokens."""
        at = self._characters
        self._characters += len(self._detokenizer.push((token,)))
        return at
