"""Requests for generated text from messages. Pure.

    text_input            BYTES [1]    the prompt
    sampling_parameters   BYTES [1]    optional: a JSON object with the fields of completions
    stream                BOOL [1]     optional: whether the answer comes in parts
    exclude_input_in_output  BOOL [1]  optional: false for an answer that begins with the prompt

Names of Triton's back end for vLLM, so that its clients work. A request's `parameters` may have the
fields of completions too.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from headroom_server.errors import InvalidRequestError
from headroom_server.open_inference_grpc import messages_pb2 as pb
from headroom_server.openai_api.bodies.parameters import CompletionCall
from headroom_server.openai_api.generate_extension import completion_of
from headroom_server.openai_api.triton_fields import EXCLUDE, SAMPLING, STREAM
from headroom_server.protocols.descriptions import TEXT_INPUTS, TEXT_OUTPUT
from headroom_server.protocols.open_inference import MAX_ID_CHARACTERS
from headroom_server.protocols.parameters import timeout_s

TEXT = "text_input"
EMPTY_FINAL = "triton_enable_empty_final_response"
LENGTH_BYTES = 4
"""Before a string in raw contents."""


class TextRequest(NamedTuple):
    """A parsed message."""

    call: CompletionCall
    timeout_s: float | None
    answer: AnswerStyle


class AnswerStyle(NamedTuple):
    """Requested form of an answer."""

    id: str
    raw: bool
    """Whether its text is in raw contents."""
    empty_final: bool
    """Whether the end is a response of its own, without text."""


def parse_text_request(request: pb.ModelInferRequest, *, streams: bool) -> TextRequest:
    """Parse a message; its answer comes in parts if the method streams, unless it says otherwise.

    Raises:
        InvalidRequestError: with the field, the rule and what was found.
    """
    if len(request.id) > MAX_ID_CHARACTERS:
        raise InvalidRequestError(f"id must be a string of at most {MAX_ID_CHARACTERS} characters")
    given = _inputs(request)
    if TEXT not in given:
        raise InvalidRequestError(f"inputs must have {TEXT}, the prompt; got none")
    for output in request.outputs:
        if output.name != TEXT_OUTPUT:
            raise InvalidRequestError(f"outputs must be {TEXT_OUTPUT}; got {output.name!r:.40}")
    parameters = {name: _value(one) for name, one in request.parameters.items()}
    limit_s = timeout_s(parameters.pop("timeout", None))
    empty_final = bool(parameters.pop(EMPTY_FINAL, False))
    stream = bool(given.get(STREAM, streams))
    if stream and not streams:
        raise InvalidRequestError("stream must be false with ModelInfer; use ModelStreamInfer")
    parameters |= {name: given[name] for name in (SAMPLING, EXCLUDE) if name in given}
    text = _text(TEXT, given[TEXT])
    call = completion_of(request.model_name, text, parameters, stream=stream, usage=stream)
    style = AnswerStyle(request.id, bool(request.raw_input_contents), empty_final)
    return TextRequest(call, limit_s, style)


def _inputs(request: pb.ModelInferRequest) -> dict[str, Any]:
    raw = request.raw_input_contents
    if len(request.inputs) > len(TEXT_INPUTS):
        raise InvalidRequestError(
            f"inputs must be at most {len(TEXT_INPUTS)} tensors; got {len(request.inputs)}"
        )
    if raw and len(raw) != len(request.inputs):
        raise InvalidRequestError(
            f"raw_input_contents must be one for each of the {len(request.inputs)} inputs, or "
            f"none; got {len(raw)}"
        )
    found: dict[str, Any] = {}
    for index, tensor in enumerate(request.inputs):
        if tensor.name not in TEXT_INPUTS or tensor.name in found:
            raise InvalidRequestError(
                f"inputs must be {', '.join(TEXT_INPUTS)}, each once; got {tensor.name!r:.40}"
            )
        where = f"inputs.{tensor.name}"
        kind = TEXT_INPUTS[tensor.name]
        if tensor.datatype != kind:
            raise InvalidRequestError(f"{where} must be {kind}; got {tensor.datatype!r:.20}")
        if not 1 <= len(tensor.shape) <= 2 or any(size != 1 for size in tensor.shape):
            raise InvalidRequestError(
                f"{where}.shape must be [1] or [1, 1]; got {[*tensor.shape[:4]]}"
            )
        found[tensor.name] = (
            _raw(where, kind, raw[index]) if raw else _typed(where, kind, tensor.contents)
        )
    return found


def _raw(where: str, kind: str, raw: bytes) -> Any:
    if kind == "BOOL":
        if raw not in (b"\0", b"\1"):
            raise InvalidRequestError(f"{where} must be one byte, 0 or 1; got {len(raw)} bytes")
        return raw == b"\1"
    length = int.from_bytes(raw[:LENGTH_BYTES], "little")
    if len(raw) != LENGTH_BYTES + length:
        raise InvalidRequestError(
            f"{where} must be one string after its length, 4 bytes; got {len(raw)} bytes"
        )
    return raw[LENGTH_BYTES:]


def _typed(where: str, kind: str, contents: pb.InferTensorContents) -> Any:
    values = contents.bool_contents if kind == "BOOL" else contents.bytes_contents
    if len(values) != 1:
        raise InvalidRequestError(f"{where}.contents must have 1 element; got {len(values)}")
    return values[0]


def _text(where: str, value: bytes) -> str:
    try:
        return value.decode()
    except UnicodeDecodeError as error:
        raise InvalidRequestError(
            f"inputs.{where} must be UTF-8; byte {error.start} is not"
        ) from error


def _value(parameter: pb.InferParameter) -> Any:
    choice = parameter.WhichOneof("parameter_choice")
    return None if choice is None else getattr(parameter, choice)
