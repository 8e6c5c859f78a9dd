"""Chat completions as OpenAI's JSON, and as the events of a stream. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import orjson

from headroom_server.generation.text.tool_calls import Call
from headroom_server.generation.values import SampledToken
from headroom_server.openai_api.answers.encoding import JsonForm, Part, finite


class ChatForm(JsonForm):
    """Chat completions."""

    kind = "chat.completion"
    chunk_kind = "chat.completion.chunk"

    def opening(self, index: int) -> bytes:
        """Return the event with the role."""
        role = {"role": "assistant", "content": ""}
        return self._chunk({"index": index, "delta": role, "logprobs": None, "finish_reason": None})

    def delta(self, index: int, part: Part) -> dict[str, Any]:
        """Return a choice of an event."""
        delta: dict[str, Any] = {"content": part.text} if part.text else {}
        if part.calls:
            delta["tool_calls"] = [
                {"index": at, **_call(name, one)} for at, name, one in part.calls
            ]
        return {"index": index, "delta": delta, **self._ends(part)}

    def choice(self, index: int, part: Part) -> dict[str, Any]:
        """Return a choice of a whole answer."""
        message: dict[str, Any] = {"role": "assistant", "content": part.text, "refusal": None}
        if part.calls:
            message["content"] = part.text or None
            message["tool_calls"] = [_call(name, one) for _, name, one in part.calls]
        return {"index": index, "message": message, **self._ends(part)}

    def _ends(self, part: Part) -> dict[str, Any]:
        return {"logprobs": self._logprobs(part.tokens), "finish_reason": part.finish}

    def _logprobs(self, tokens: Sequence[SampledToken]) -> Any:
        if not tokens:
            return None
        content = []
        for one in tokens:
            others = [self._named(other.token, other.logprob) for other in one.alternatives]
            named = self._named(one.token, one.logprob) | {"top_logprobs": others}
            # as bytes, which take a tenth of the objects' memory
            content.append(orjson.Fragment(orjson.dumps(named)))
        return {"content": content, "refusal": None}

    def _named(self, token: int, logprob: float | None) -> dict[str, Any]:
        value = self._tokenizer.token_bytes(token)
        return {
            "token": value.decode("utf-8", "replace"),
            "logprob": finite(logprob),
            "bytes": list(value),
        }


def _call(identifier: str, call: Call) -> dict[str, Any]:
    return {
        "id": identifier,
        "type": "function",
        "function": {"name": call.name, "arguments": call.arguments},
    }
