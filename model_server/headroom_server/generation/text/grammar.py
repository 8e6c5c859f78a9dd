"""Grammars of tokens by llguidance: JSON schemas, regular expressions, Lark grammars, choices."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Collection
from typing import Any

import orjson
from llguidance import LLMatcher, LLTokenizer

JSON_OPTIONS: Any = {"whitespace_pattern": r"[ \n\t]{0,8}"}
"""Without a bound, a model may write spaces until its answer is cut."""
MOST_COMPILED = 64
"""Constraints kept compiled: clients repeat the same schema."""


class GuidanceGrammar:
    """One answer's grammar; see `TokenGrammar`."""

    def __init__(self, matcher: LLMatcher, eos_tokens: Collection[int]) -> None:
        self._matcher = matcher
        self._eos = eos_tokens

    def allowed(self) -> memoryview:
        """Return the mask of the next token."""
        return memoryview(self._matcher.compute_bitmask())

    def accept(self, token: int) -> bool:
        """Advance by one token."""
        return bool(self._matcher.consume_token(token))

    @property
    def finished(self) -> bool:
        """Whether nothing but the end may follow."""
        return bool(self._matcher.is_stopped())


class GuidanceGrammars:
    """Compiles constraints for one tokenizer; safe for threads."""

    def __init__(self, tokenizer_json: str, eos_tokens: Collection[int]) -> None:
        self._json = tokenizer_json
        self._eos = frozenset(eos_tokens)
        self._tokenizer: LLTokenizer | None = None
        self._compiled: OrderedDict[tuple[str, str], LLMatcher] = OrderedDict()
        self._lock = threading.Lock()

    def compile(self, kind: str, text: str) -> GuidanceGrammar:
        """Return a new grammar.

        Raises:
            ValueError: the constraint is invalid or too complex.
        """
        with self._lock:
            matcher = self._compiled.get((kind, text))
            if matcher is None:
                matcher = self._new(kind, text)
                self._compiled[kind, text] = matcher
                if len(self._compiled) > MOST_COMPILED:
                    self._compiled.popitem(last=False)
            else:
                self._compiled.move_to_end((kind, text))
            return GuidanceGrammar(matcher.deep_copy(), self._eos)

    def _new(self, kind: str, text: str) -> LLMatcher:
        if self._tokenizer is None:  # takes a second with 128 000 tokens
            eos = sorted(self._eos) or None
            self._tokenizer = LLTokenizer(self._json, eos_token=eos)
        matcher = LLMatcher(self._tokenizer, _grammar(kind, text))
        if matcher.is_error():
            raise ValueError(matcher.get_error().split("\n", 1)[0])
        return matcher


def _grammar(kind: str, text: str) -> str:
    if kind in ("json_schema", "json_object"):
        schema = text if kind == "json_schema" else '{"type": "object"}'
        return LLMatcher.grammar_from_json_schema(schema, overrides=JSON_OPTIONS)
    if kind == "regex":
        return LLMatcher.grammar_from_regex(text)
    if kind == "choice":
        choices = " | ".join(orjson.dumps(one).decode() for one in orjson.loads(text))
        return LLMatcher.grammar_from_lark(f"start: {choices}")
    return LLMatcher.grammar_from_lark(text)
