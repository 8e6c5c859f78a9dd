"""Compiles JSON schemas, regular expressions, Lark grammars and choices by llguidance."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

import orjson
from llguidance import LLMatcher, LLParserLimits, LLTokenizer

JSON_OPTIONS: Any = {"whitespace_pattern": r"[ \n\t]{0,8}"}
"""Without a bound, a model may write spaces until its answer is cut."""
LIMITS = LLParserLimits(
    # states are made while answers are generated: 1.1 KiB each at most, so 18 MiB of a constraint
    max_lexer_states=16_384,
    # of one mask: milliseconds
    step_lexer_fuel=50_000,
    step_max_items=5_000,
    verbose_errors=False,
)


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
