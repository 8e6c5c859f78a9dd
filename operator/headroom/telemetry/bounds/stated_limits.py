"""Limits of an engine that its page does not say: the arguments that it was started with. Pure."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache

from headroom.profiles.values import Profile
from headroom.scaling.values.tokens import EngineLimits
from headroom.telemetry.bounds.generation_bounds import MOST_TOKENS
from headroom.telemetry.bounds.physical_bounds import MOST_BATCH

NOTHING_STATED = EngineLimits()
_WHOLE = re.compile(r"[0-9]{1,15}", re.ASCII)


def stated_limits(profile: Profile, arguments: tuple[str, ...]) -> EngineLimits:
    """Return what the arguments of a pod's containers say, None for what is no such number.

    Also those in the text of a shell: `sh -c "vllm serve m --max-num-seqs=64"`. As the servers do
    it, `_` in a name is `-`, and the last one counts.
    """
    if profile.generation is None or not arguments:
        return NOTHING_STATED
    return _stated(profile.batch_argument, profile.iteration_argument, arguments)


@lru_cache(maxsize=1024)
def _stated(sequences: str, iteration_tokens: str, arguments: tuple[str, ...]) -> EngineLimits:
    words = " ".join(arguments).split()
    return EngineLimits(
        sequences=_number(sequences, words, MOST_BATCH),
        iteration_tokens=_number(iteration_tokens, words, MOST_TOKENS),
    )


def _number(argument: str, words: Sequence[str], most: float) -> int | None:
    stated = ""
    for word, following in zip(words, (*words[1:], ""), strict=True):
        name, given, value = word.partition("=")
        if argument and _spelled(name) == _spelled(argument):
            stated = value if given else following
    text = stated.strip("\"'")
    number = int(text) if _WHOLE.fullmatch(text) else 0
    return number if 1 <= number <= most else None


def _spelled(name: str) -> str:
    return name.strip("\"'").replace("_", "-")
