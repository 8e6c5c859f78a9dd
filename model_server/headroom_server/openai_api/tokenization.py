"""POST /tokenize and /detokenize, as vLLM has them: clients count tokens before they send a prompt.

They are no requests for generated text: neither admission nor a count of requests knows them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import orjson

from headroom_server.connection import connection_of
from headroom_server.errors import InvalidRequestError, NotJsonError
from headroom_server.generation.text.model_text import ModelText
from headroom_server.generation.values import GenerationLimits, Sampling
from headroom_server.openai_api.bodies.chat_schemas import ChatFields
from headroom_server.openai_api.bodies.field_errors import validated
from headroom_server.openai_api.bodies.parameters import Call, Choices, CompletionCall
from headroom_server.openai_api.bodies.parsing import chat_of
from headroom_server.openai_api.bodies.token_schemas import DetokenizeFields, TokenizeFields
from headroom_server.openai_api.errors import InvalidFieldError
from headroom_server.openai_api.prompts.encoder import SHORT_BODY_BYTES
from headroom_server.openai_api.prompts.rendering import only_prompt
from headroom_server.openai_api.service import GenerationService
from headroom_server.protocols.request_options import parse_request_options
from headroom_server.web.inference.request_body import explain
from headroom_server.web.shared_bound import Reservation

if TYPE_CHECKING:
    from starlette.types import Receive, Scope

Work = Callable[[], bytes]
Parse = Callable[[bytes], tuple[Work, bool]]
"""Parses a body into its request, and whether that takes long however short the body is."""


class Tokenization:
    """The tokenizer of one generating model."""

    def __init__(self, service: GenerationService) -> None:
        self._service = service

    async def tokenize(self, scope: Scope, receive: Receive) -> bytes:
        """Return the tokens of a text or a conversation.

        Raises:
            RequestError: invalid input, or not now.
        """
        return await self._answer(self._parse_tokenize, scope, receive)

    async def detokenize(self, scope: Scope, receive: Receive) -> bytes:
        """Return the text of tokens.

        Raises:
            RequestError: invalid input, or not now.
        """
        return await self._answer(self._parse_detokenize, scope, receive)

    def _parse_tokenize(self, body: bytes) -> tuple[Work, bool]:
        service = self._service
        fields, model = validated(TokenizeFields, body), service.generator.model
        service.reader.check_model(fields.model or model)
        call = _call_of(fields, model)
        text, limits = service.text, service.generator.limits
        names = bool(fields.return_token_strs)
        special = fields.add_special_tokens
        long = names or service.prompts.takes_long(call)
        return lambda: tokenized(call, text, limits, special=special, names=names), long

    def _parse_detokenize(self, body: bytes) -> tuple[Work, bool]:
        service = self._service
        fields = validated(DetokenizeFields, body)
        service.reader.check_model(fields.model or service.generator.model)
        text, limits = service.text, service.generator.limits
        return lambda: detokenized(fields.tokens, text, limits), False

    async def _answer(self, parse: Parse, scope: Scope, receive: Receive) -> bytes:
        service, headers = self._service, dict(scope["headers"])
        connection = connection_of(scope)
        reservation = Reservation(service.receiving, connection.client)
        try:
            body = await service.reader.body(headers, receive, reservation, connection)
            classes = service.generator.options.classes
            tenant = parse_request_options(headers, classes).tenant
            try:
                work, long = parse(body)
            except NotJsonError as error:
                explain(error, headers)
                raise
            long = long or len(body) > SHORT_BODY_BYTES
            if not long:
                return service.prompts.at_once(work)
            return await service.prompts.run(work, connection, tenant)
        except InvalidRequestError as error:
            error.counted = True  # no invalid request for generated text
            raise
        finally:
            reservation.close()


def tokenized(
    call: Call,
    text: ModelText,
    limits: GenerationLimits,
    *,
    special: bool | None,
    names: bool,
) -> bytes:
    """Return the body of a response: tokens, their count, and their names if requested.

    Raises:
        InvalidRequestError: the messages do not fit the model's chat template.
    """
    prompt = only_prompt(call, text)
    assert prompt is not None
    added = prompt if special is None else prompt._replace(special=special)
    tokens = [*added.tokens(text)]
    return orjson.dumps(
        {
            "count": len(tokens),
            "max_model_len": limits.context_tokens,
            "tokens": tokens,
            "token_strs": [text.tokenizer.token_name(one) for one in tokens] if names else None,
        }
    )


def detokenized(tokens: list[int], text: ModelText, limits: GenerationLimits) -> bytes:
    """Return the body of an answer: the text, with the names of special tokens.

    Raises:
        InvalidFieldError: a token is beyond the vocabulary.
    """
    highest = max(tokens, default=0)
    if highest >= limits.vocabulary:
        raise InvalidFieldError(
            "tokens", f"tokens must be below {limits.vocabulary}; got {highest}"
        )
    return orjson.dumps({"prompt": text.tokenizer.decode(tokens)})


def _call_of(fields: TokenizeFields, model: str) -> Call:
    """Return the request for generated text that has this prompt."""
    if fields.prompt is not None:
        choices = Choices(sampling=Sampling())
        return CompletionCall(model=model, prompts=(fields.prompt,), choices=choices)
    chat = {
        "messages": fields.messages,
        "tools": fields.tools,
        "add_generation_prompt": fields.add_generation_prompt,
        "chat_template_kwargs": fields.chat_template_kwargs,
    }
    return chat_of(ChatFields.model_validate({"model": model, **chat}))
