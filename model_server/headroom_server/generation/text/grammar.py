"""Grammars of tokens by llguidance: JSON schemas, regular expressions, Lark grammars, choices."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Collection
from typing import Any, Protocol
from weakref import WeakValueDictionary

import orjson
from llguidance import LLMatcher, LLTokenizer

from headroom_server.errors import QueueFullError

JSON_OPTIONS: Any = {"whitespace_pattern": r"[ \n\t]{0,8}"}
"""Without a bound, a model may write spaces until its answer is cut."""
MOST_COMPILED = 64
KEPT_BYTES = 64 << 20
"""Constraints kept compiled: clients repeat the same schema."""
IN_USE_BYTES = 192 << 20
"""Of different constraints together, kept or of requests that wait or run."""


class Trial(Protocol):
    """Tries a constraint where it can do no harm."""

    def cost_bytes(self, kind: str, text: str) -> int:
        """Return the memory that compiling takes.

        Raises:
            ValueError: the constraint is invalid or too complex.
        """


class _Compiled:
    """A compiled constraint, and the memory that it takes."""

    __slots__ = ("__weakref__", "cost_bytes", "matcher")

    def __init__(self, matcher: LLMatcher, cost_bytes: int) -> None:
        self.matcher = matcher
        self.cost_bytes = cost_bytes


class GuidanceGrammar:
    """One answer's grammar; see `TokenGrammar`."""

    def __init__(self, of: _Compiled) -> None:
        self._of = of  # counts as in use
        self._matcher = of.matcher.deep_copy()

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

    def __init__(self, tokenizer_json: str, eos_tokens: Collection[int], trial: Trial) -> None:
        self._json = tokenizer_json
        self._eos = frozenset(eos_tokens)
        self._trial = trial
        self._tokenizer: LLTokenizer | None = None
        self._kept: OrderedDict[tuple[str, str], _Compiled] = OrderedDict()
        self._in_use: WeakValueDictionary[tuple[str, str], _Compiled] = WeakValueDictionary()
        self._lock = threading.Lock()

    def compile(self, kind: str, text: str) -> GuidanceGrammar:
        """Return a new grammar.

        Raises:
            ValueError: the constraint is invalid or too complex.
            QueueFullError: those in use take too much memory.
        """
        with self._lock:
            found = self._in_use.get((kind, text)) or self._new(kind, text)
            self._keep((kind, text), found)
            return GuidanceGrammar(found)

    @property
    def in_use_bytes(self) -> int:
        """Memory of all different constraints."""
        return sum(one.cost_bytes for one in self._in_use.values())

    def _new(self, kind: str, text: str) -> _Compiled:
        cost_bytes = self._trial.cost_bytes(kind, text)
        if self.in_use_bytes + cost_bytes > IN_USE_BYTES:
            self._kept.clear()
        if self.in_use_bytes + cost_bytes > IN_USE_BYTES:
            raise QueueFullError("constraints in use take too much memory; retry", retry_after_s=1)
        if self._tokenizer is None:
            self._tokenizer = tokenizer_of(self._json, self._eos)
        made = _Compiled(compiled(self._tokenizer, kind, text), cost_bytes)
        self._in_use[kind, text] = made
        return made

    def _keep(self, name: tuple[str, str], one: _Compiled) -> None:
        kept = self._kept
        kept[name] = one
        kept.move_to_end(name)
        while len(kept) > MOST_COMPILED or sum(of.cost_bytes for of in kept.values()) > KEPT_BYTES:
            kept.popitem(last=False)


def tokenizer_of(tokenizer_json: str, eos_tokens: Collection[int]) -> LLTokenizer:
    """Return the library's tokenizer; takes a second with 128 000 tokens."""
    return LLTokenizer(tokenizer_json, eos_token=sorted(eos_tokens) or None)


def compiled(tokenizer: LLTokenizer, kind: str, text: str) -> LLMatcher:
    """Compile a constraint.

    Raises:
        ValueError: it is invalid.
    """
    matcher = LLMatcher(tokenizer, _grammar(kind, text))
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
