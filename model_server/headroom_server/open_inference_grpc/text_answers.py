"""Generated text as messages: parts of a stream, or one message. Pure.

The last response has the reason of the end and the sums of tokens.
"""

from __future__ import annotations

from collections.abc import Sequence

from headroom_server.errors import RequestError
from headroom_server.open_inference_grpc import messages_pb2 as pb
from headroom_server.open_inference_grpc.failures import failure
from headroom_server.open_inference_grpc.stream_writer import framed
from headroom_server.open_inference_grpc.text_requests import LENGTH_BYTES, AnswerStyle
from headroom_server.openai_api.answers.encoding import AnswerIdentity, Part, Usage
from headroom_server.protocols.descriptions import TEXT_OUTPUT

VERSION = "1"
FINAL = "triton_final_response"


class MessageForm:
    """A text's answer as messages: framed parts of a stream, or one message."""

    ending = b""

    def __init__(self, identity: AnswerIdentity, style: AnswerStyle) -> None:
        self._identity = identity
        self._style = style
        self._last: pb.ModelInferResponse | None = None

    def opening(self, index: int) -> bytes:
        """Return nothing."""
        return b""

    def plain(self, index: int, text: str) -> bytes:
        """Return the message of text alone."""
        return self._sent(self._response(text))

    def event(self, index: int, part: Part, usage: Usage | None = None) -> bytes:
        """Return the message of a part; the last one waits for the sums."""
        response = self._response(part.text)
        if part.finish is None:
            return self._sent(response)
        response.parameters["finish_reason"].string_param = part.finish
        self._last = response
        return b""

    def usage_event(self, usage: Usage) -> bytes:
        """Return the response that ends the answer, with the usage."""
        last = self._last or self._response("")
        before = b""
        if self._style.empty_final:
            before = self._sent(last)
            last = pb.ModelInferResponse(
                model_name=self._identity.model, model_version=VERSION, id=self._style.id
            )
        _count(last, usage)
        return before + self._sent(last, final=True)

    def failure(self, error: RequestError) -> bytes:
        """Return the message that ends an answer which cannot be completed."""
        return framed(failure(self._identity.model, self._style.id, error))

    def whole(self, parts: Sequence[Part], usage: Usage) -> bytes:
        """Return the answer as one response."""
        response = self._response(parts[0].text)
        response.parameters["finish_reason"].string_param = parts[0].finish or ""
        _count(response, usage)
        return response.SerializeToString()

    def _response(self, text: str) -> pb.ModelInferResponse:
        response = pb.ModelInferResponse(
            model_name=self._identity.model, model_version=VERSION, id=self._style.id
        )
        output = response.outputs.add(name=TEXT_OUTPUT, datatype="BYTES", shape=(1,))
        data = text.encode()
        if self._style.raw:
            response.raw_output_contents.append(len(data).to_bytes(LENGTH_BYTES, "little") + data)
        else:
            output.contents.bytes_contents.append(data)
        return response

    def _sent(self, response: pb.ModelInferResponse, *, final: bool = False) -> bytes:
        response.parameters[FINAL].bool_param = final
        return framed(pb.ModelStreamInferResponse(infer_response=response).SerializeToString())


def _count(response: pb.ModelInferResponse, usage: Usage) -> None:
    response.parameters["prompt_tokens"].int64_param = usage.prompt_tokens
    response.parameters["cached_tokens"].int64_param = usage.cached_tokens
    response.parameters["generated_tokens"].int64_param = usage.completion_tokens
