"""Builds the context of a call's answer: its choices' requests, its identifier, its encoding."""

from __future__ import annotations

import itertools
import secrets
import time

from headroom_server.generation.text.model_text import ModelText
from headroom_server.openai_api.answers.choice_parts import AnswerContext
from headroom_server.openai_api.answers.encoding import AnswerIdentity
from headroom_server.openai_api.bodies.parameters import Call, ChatCall
from headroom_server.openai_api.choice_requests import build_requests, echoes
from headroom_server.openai_api.endpoints import MakeForm
from headroom_server.openai_api.prompts.encoder import EncodedCall
from headroom_server.runtime.generating.generation_run import GenerationRun
from headroom_server.runtime.generating.generator import Generator
from headroom_server.tracing.current import RequestedText


class AnswerContexts:
    """Makes the contexts of one model's answers."""

    def __init__(self, generator: Generator, text: ModelText) -> None:
        self._generator = generator
        self._text = text
        # unique, not secret: a system call per request would give up the interpreter's lock
        self._ids, self._answers = secrets.token_hex(12), itertools.count()

    def make(
        self, run: GenerationRun, call: Call, encoded: EncodedCall, make_form: MakeForm
    ) -> AnswerContext:
        """Return the context of a call's answer, and note the request's parameters in its trace."""
        generator, text = self._generator, self._text
        requests = build_requests(
            call,
            encoded,
            text,
            generator.limits,
            run.options,
            arrived_s=run.arrived_s,
            key=generator.key,
        )
        chat = isinstance(call, ChatCall)
        if run.trace is not None:
            choices, operation = call.choices, "chat" if chat else "text_completion"
            run.trace.requested = RequestedText(
                operation, choices.n, choices.max_tokens, choices.stream
            )
        identifier = f"{self._ids}{next(self._answers):08x}"
        prefix = "chatcmpl-" if chat else "cmpl-"
        form = make_form(
            call, AnswerIdentity(prefix + identifier, int(time.time()), generator.model), text
        )
        return AnswerContext(call, text, form, requests, echoes(call, encoded, text), run.stop)
