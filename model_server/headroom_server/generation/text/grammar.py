"""Grammars of tokens by llguidance: JSON schemas, regular expressions, Lark grammars, choices."""

from __future__ import annotations

import threading
import time
from collections import OrderedDict
from collections.abc import Collection
from typing import Any, Protocol
from weakref import WeakValueDictionary, finalize

import orjson
from llguidance import LLMatcher, LLParserLimits, LLTokenizer

from headroom_server.errors import QueueFullError
from headroom_server.generation.text.constraint_work import ConstraintWork, Work

JSON_OPTIONS: Any = {"whitespace_pattern": r"[ \n\t]{0,8}"}
"""Without a bound, a model may write spaces until its answer is cut."""
MOST_COMPILED = 64
KEPT_BYTES = 64 << 20
"""Constraints kept compiled: clients repeat the same schema."""
IN_USE_BYTES = 192 << 20
"""Memory of different constraints together, kept or of requests that wait or run."""
LIMITS = LLParserLimits(
    # states are made while answers are generated: 1.1 KiB each at most, so 18 MiB of a constraint
    max_lexer_states=16_384,
    # of one mask: milliseconds
    step_lexer_fuel=50_000,
    step_max_items=5_000,
    verbose_errors=False,
)


class Trial(Protocol):
    """Tries a constraint where it can do no harm."""

    def cost_bytes(self, kind: str, text: str) -> int:
        """Return the memory that compiling takes.

        Raises:
            ValueError: the constraint is invalid or too complex.
        """


class _Compiled:
    """A compiled constraint, and the memory that it takes."""

    __slots__ = ("__weakref__", "cost_bytes", "exhausted", "matcher")

    def __init__(self, matcher: LLMatcher, cost_bytes: int) -> None:
        self.matcher = matcher
        self.cost_bytes = cost_bytes
        self.exhausted = False
        """Its answers have made as many states as it may have: a further answer would end at
        once."""


class GuidanceGrammar:
    """One answer's grammar; see `TokenGrammar`. One that takes too much work allows no token."""

    def __init__(self, of: _Compiled, work: ConstraintWork) -> None:
        self._of = of  # counts as in use
        self._matcher = of.matcher.deep_copy()
        self._work = work.begun()
        finalize(self, self._work.close).atexit = False

    def allowed(self) -> memoryview:
        """Return the mask of the next token."""
        with _Timed(self._work):
            return memoryview(self._matcher.compute_bitmask())

    def accept(self, token: int) -> bool:
        """Advance by one token."""
        with _Timed(self._work):
            accepted = bool(self._matcher.consume_token(token))
        if self._matcher.is_error():
            self._of.exhausted = True
            return False
        return accepted and self._work.step()

    @property
    def finished(self) -> bool:
        """Whether nothing but the end may follow."""
        return bool(self._matcher.is_stopped())


class _Timed:
    """Counts the processor time of its block, without that of other threads."""

    __slots__ = ("_begun_s", "_work")

    def __init__(self, work: Work) -> None:
        self._work = work

    def __enter__(self) -> None:
        self._begun_s = time.thread_time()

    def __exit__(self, *_: object) -> None:
        self._work.spend(time.thread_time() - self._begun_s)


class GuidanceGrammars:
    """Compiles constraints for one tokenizer; safe for threads."""

    def __init__(self, tokenizer_json: str, eos_tokens: Collection[int], trial: Trial) -> None:
        self._json = tokenizer_json
        self._eos = frozenset(eos_tokens)
        self._trial = trial
        self._tokenizer: LLTokenizer | None = None
        self._kept: OrderedDict[tuple[str, str], _Compiled] = OrderedDict()
        self._in_use: WeakValueDictionary[tuple[str, str], _Compiled] = WeakValueDictionary()
        self._compiling = threading.Lock()
        self._lock = threading.Lock()
        """Protects what is compiled; held for microseconds."""
        self._work = ConstraintWork()

    def known(self, kind: str, text: str) -> GuidanceGrammar | None:
        """Return a new grammar if the constraint is compiled, without waiting for another one."""
        with self._lock:
            found = self._in_use.get((kind, text))
            if found is None or found.exhausted:
                return None
            self._keep((kind, text), found)
        return GuidanceGrammar(found, self._work)

    def compile(self, kind: str, text: str) -> GuidanceGrammar:
        """Return a new grammar.

        Raises:
            ValueError: the constraint is invalid or too complex.
            QueueFullError: those in use take too much memory.
        """
        with self._compiling:
            return self.known(kind, text) or GuidanceGrammar(self._new(kind, text), self._work)

    @property
    def in_use_bytes(self) -> int:
        """Memory of all different constraints."""
        return sum(one.cost_bytes for one in self._in_use.values())

    def _new(self, kind: str, text: str) -> _Compiled:
        cost_bytes = self._trial.cost_bytes(kind, text)
        with self._lock:
            if self.in_use_bytes + cost_bytes > IN_USE_BYTES:
                self._kept.clear()
            if self.in_use_bytes + cost_bytes > IN_USE_BYTES:
                raise QueueFullError(
                    "constraints in use take too much memory; retry", retry_after_s=1
                )
        if self._tokenizer is None:
            self._tokenizer = tokenizer_of(self._json, self._eos)
        made = _Compiled(compiled(self._tokenizer, kind, text), cost_bytes)
        with self._lock:
            self._in_use[kind, text] = made
            self._keep((kind, text), made)
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
    # silent: it would write a line to the server's log for each answer that it ends
    matcher = LLMatcher(tokenizer, _grammar(kind, text), log_level=0, limits=LIMITS)
    if matcher.is_error():
        raise ValueError(_reason(matcher.get_error()))
    return matcher


def _reason(error: str) -> str:
    """Return the lines that say what is wrong, without those that show where."""
    first, *others = error.split("\n")
    return " ".join((first, *(line for line in others if line.startswith("error: "))))


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
