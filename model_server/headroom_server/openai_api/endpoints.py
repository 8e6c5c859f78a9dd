"""The paths that generate text: how their bodies are read, and the form of their answers. Pure."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from headroom_server.generation.text.model_text import ModelText
from headroom_server.openai_api.answers.chat_form import ChatForm
from headroom_server.openai_api.answers.completion_form import CompletionForm
from headroom_server.openai_api.answers.encoding import AnswerIdentity, Form
from headroom_server.openai_api.bodies.parameters import Call
from headroom_server.openai_api.bodies.parsing import parse_chat, parse_completion
from headroom_server.openai_api.generate_extension import GenerateForm, parse_generate

Parse = Callable[[bytes], Call]
MakeForm = Callable[[Call, AnswerIdentity, ModelText], Form]
Endpoint = tuple[Parse, MakeForm]


def chat_form(call: Call, identity: AnswerIdentity, text: ModelText) -> Form:
    """Return the form of chat completions."""
    return ChatForm(identity, text.tokenizer, usage=call.choices.include_usage)


def completion_form(call: Call, identity: AnswerIdentity, text: ModelText) -> Form:
    """Return the form of completions."""
    return CompletionForm(identity, text.tokenizer, usage=call.choices.include_usage)


def generate_form(call: Call, identity: AnswerIdentity, text: ModelText) -> Form:
    """Return the form of the Open Inference Protocol's extension."""
    return GenerateForm(identity)


ENDPOINTS: dict[str, Endpoint] = {
    "/v1/completions": (parse_completion, completion_form),
    "/v1/chat/completions": (parse_chat, chat_form),
}
ONLY_VERSION = "versions/1/"
"""A generating model has one version, which its metadata name and a path may."""


def endpoint_of(path: str) -> Endpoint | None:
    """Return how the requests of a path are read and answered; None if it does not generate."""
    found = ENDPOINTS.get(path)
    if found is not None or not path.startswith("/v2/models/"):
        return found
    model, _, action = path[len("/v2/models/") :].partition("/")
    action = action.removeprefix(ONLY_VERSION)
    if action not in ("generate", "generate_stream"):
        return None
    return partial(parse_generate, model, stream=action == "generate_stream"), generate_form
