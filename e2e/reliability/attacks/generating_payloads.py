"""Payloads of attacks on a server that generates text. Pure."""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable, Mapping, Sequence

from reliability.attacks.payloads import Payload, Then, post

MODEL = "m"
COMPLETIONS, CHAT = b"/v1/completions", b"/v1/chat/completions"
_new = itertools.count()


def completion(**fields: object) -> bytes:
    """Return a request for a completion."""
    body = {"model": MODEL, "prompt": "Tell me", "max_tokens": 1500, **fields}
    return post(COMPLETIONS, json.dumps(body).encode())


def chat(**fields: object) -> bytes:
    """Return a request for an answer in a conversation."""
    messages = [{"role": "user", "content": "hi"}]
    body = {"model": MODEL, "messages": messages, "max_tokens": 64, **fields}
    return post(CHAT, json.dumps(body).encode())


def ambiguous(mark: int) -> str:
    """Return a grammar each of whose tokens takes 12.6 KiB and 2 ms."""
    rules = range(400)
    return (
        f"// {mark}\nstart: r*\nr: "
        + " | ".join(f"r{rule}" for rule in rules)
        + "\n"
        + "\n".join(f'r{rule}: "a" s{rule}\ns{rule}: "" | "b{rule}"' for rule in rules)
    )


def states(mark: int) -> str:
    """Return a pattern whose answers make a new state with every token."""
    return f"(a|b)*a(a|b){{{30 + mark}}}"


def patterns(mark: int) -> str:
    """Return a grammar that takes the compiler as much as it may have."""
    return "start: A\nA: " + " & ".join(f"/.*a.{{{mark + one}}}b.*/" for one in range(20))


def properties(mark: int) -> dict[str, object]:
    """Return a schema with many names that may be left out."""
    each = {"type": "string", "pattern": "[a-z]{1,50}"}
    return {"type": "object", "properties": {f"p{mark}-{one}": each for one in range(300)}}


def tools() -> list[dict[str, object]]:
    """Return as many tools as are taken, with large descriptions."""
    schema = {f"p{one}": {"type": "string", "description": "x" * 40} for one in range(12)}
    parameters = {"type": "object", "properties": schema}
    return [
        {"type": "function", "function": {"name": f"t{one}", "parameters": parameters}}
        for one in range(128)
    ]


def _different(make: Callable[[int], bytes], then: Then = Then.READ) -> Callable[[], Payload]:
    """Send a different one over each connection."""
    return lambda: Payload(make(next(_new)), then)


def _one(data: bytes, then: Then = Then.READ) -> Callable[[], Payload]:
    return lambda: Payload(data, then)


_TEXTS: Sequence[str] = ["x" * 250 + str(number) for number in range(16)]
PAYLOADS: Mapping[str, Callable[[], Payload]] = {
    "unread streams": _one(completion(stream=True, ignore_eos=True), Then.STAY),
    "unread streams of many choices": _one(
        completion(stream=True, ignore_eos=True, n=64, logprobs=20), Then.STAY
    ),
    "unread streams with usage": _one(
        completion(
            stream=True,
            ignore_eos=True,
            n=64,
            stream_options={"include_usage": True, "continuous_usage_stats": True},
        ),
        Then.STAY,
    ),
    "many choices": _one(completion(n=128, ignore_eos=True)),
    "probabilities": _one(completion(n=4, logprobs=20, ignore_eos=True)),
    "biases": _one(
        completion(n=16, logit_bias={str(number): 1.5 for number in range(250)}, ignore_eos=True)
    ),
    "penalties": _one(
        completion(n=64, repetition_penalty=1.1, frequency_penalty=1.0, ignore_eos=True)
    ),
    "stop strings": _one(completion(n=64, stop=_TEXTS, ignore_eos=True)),
    "prompts of text": _one(
        post(COMPLETIONS, b'{"model":"m","prompt":"' + b"a b" * 60_000 + b'"}')
    ),
    "prompts of tokens": _one(completion(prompt=[[1] * 500] * 128, max_tokens=1)),
    "wrong tokens": _one(completion(prompt=[-1] * 60_000)),
    "messages": _one(
        post(
            CHAT,
            json.dumps(
                {"model": MODEL, "messages": [{"role": "user", "content": ""}] * 8192}
            ).encode(),
        )
    ),
    "tools": _one(chat(tools=tools())),
    "required tools": _one(chat(tools=tools(), tool_choice="required")),
    "ambiguous grammars": _different(
        lambda mark: completion(guided_grammar=ambiguous(mark), n=64, logit_bias={"66": 100})
    ),
    "patterns with many states": _different(
        lambda mark: completion(guided_regex=states(mark), n=64, ignore_eos=True)
    ),
    "grammars that take long to compile": _different(
        lambda mark: completion(guided_grammar=patterns(mark % 500))
    ),
    "the same, and leaving": _different(
        lambda mark: completion(guided_grammar=patterns(mark % 500)), Then.LEAVE
    ),
    "schemas": _different(lambda mark: completion(guided_json=properties(mark), n=16)),
    "deep schemas": _one(
        completion(guided_json={"a": json.loads("[" * 100 + "]" * 100)}, max_tokens=4)
    ),
    "choices of answers": _one(completion(guided_choice=[f"v{n}" for n in range(1024)], n=64)),
    "the generate extension": _one(
        post(
            b"/v2/models/m/generate_stream",
            json.dumps(
                {"text_input": "hi", "parameters": {"max_tokens": 1500, "ignore_eos": True}}
            ).encode(),
        ),
        Then.STAY,
    ),
}
"""Payloads by name."""
QUICK = ("unread streams of many choices", "ambiguous grammars", "the same, and leaving")
