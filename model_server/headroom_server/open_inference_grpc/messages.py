"""Protocol messages to work, and outputs to messages. Pure."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from headroom_server.datatypes import elements
from headroom_server.engine import Work
from headroom_server.errors import InvalidRequestError
from headroom_server.open_inference_grpc import messages_pb2 as pb
from headroom_server.protocols.binary_tensors import from_bytes, to_bytes
from headroom_server.protocols.contract import Contract, Given, Wanted
from headroom_server.protocols.open_inference import MAX_ID_CHARACTERS, Inference, json_values
from headroom_server.protocols.parameters import refuse_sequences, timeout_s
from headroom_server.tensors import TensorSpec
from headroom_server.typed_arrays import Numbers

CONTENTS = {
    "BOOL": "bool_contents",
    "UINT8": "uint_contents",
    "UINT16": "uint_contents",
    "UINT32": "uint_contents",
    "UINT64": "uint64_contents",
    "INT8": "int_contents",
    "INT16": "int_contents",
    "INT32": "int_contents",
    "INT64": "int64_contents",
    "FP32": "fp32_contents",
    "FP64": "fp64_contents",
    "BYTES": "bytes_contents",
}
"""The field of `contents` per datatype. FP16 and BF16 have none and are sent as raw bytes."""

MAX_DIMENSIONS = 64


def parse(contract: Contract, request: pb.ModelInferRequest) -> Inference:
    """Parse a request; outputs are raw bytes if its inputs are, or if they must be.

    Raises:
        InvalidRequestError: with the field, the rule and what was found.
    """
    _check_counts(contract, request)
    given = [Given(one.name, one.datatype, [*one.shape]) for one in request.inputs]
    items, length = contract.extent(given)
    raw = request.raw_input_contents
    if raw and len(raw) != len(given):
        raise InvalidRequestError(
            f"raw_input_contents must be one for each of the {len(given)} inputs, or none; got "
            f"{len(raw)}"
        )
    inputs = {}
    for index, tensor in enumerate(request.inputs):
        spec = contract.inputs[tensor.name]
        count = items * spec.elements_at(length)
        if raw:
            inputs[spec.name] = _raw(spec, tensor, raw[index], count)
        else:
            inputs[spec.name] = _contents(spec, tensor, count)
    contract.signature.check_ranges(inputs)
    if len(request.id) > MAX_ID_CHARACTERS:
        raise InvalidRequestError(f"id must be a string of at most {MAX_ID_CHARACTERS} characters")
    refuse_sequences(_chosen(request.parameters, "sequence_id"))
    return Inference(
        Work(items, inputs, length),
        _wanted(contract, request, binary=bool(raw)),
        request.id or None,
        timeout_s(_chosen(request.parameters, "timeout")),
    )


def render(
    model: str, version: str, inference: Inference, outputs: Mapping[str, Numbers]
) -> pb.ModelInferResponse:
    """Return the response."""
    items, length = inference.work.items, inference.work.length
    answer = pb.ModelInferResponse(model_name=model, model_version=version, id=inference.request_id)
    for spec, binary in inference.wanted:
        tensor = answer.outputs.add(
            name=spec.name, datatype=spec.datatype, shape=(items, *spec.sized(length))
        )
        if binary:
            answer.raw_output_contents.append(to_bytes(outputs[spec.name]))
        else:
            numbers = outputs[spec.name]
            values = elements(numbers) if spec.is_strings else json_values(spec, numbers)
            getattr(tensor.contents, CONTENTS[spec.datatype]).extend(values)
    return answer


def check_parameters(parameters: Collection[str], *known: str) -> None:
    """Check the parameters of a load or an unload.

    Raises:
        InvalidRequestError: for anything else: a configuration or files in a request would be code
            from its sender.
    """
    for name in parameters:
        if name not in known:
            raise InvalidRequestError(
                f"parameters.{name:.40}: unknown parameter; configuration and files are read "
                "from the "
                f"repository"
            )


def _check_counts(contract: Contract, request: pb.ModelInferRequest) -> None:
    """Check the numbers of tensors and dimensions before an object is built for each."""
    for field, found, most in (
        ("inputs", len(request.inputs), len(contract.inputs)),
        ("outputs", len(request.outputs), len(contract.outputs)),
    ):
        if found > most:
            raise InvalidRequestError(f"{field} must be at most {most} tensors; got {found}")
    for tensor in request.inputs:
        if "shared_memory_region" in tensor.parameters:
            raise InvalidRequestError(
                f"inputs.{tensor.name:.40}: shared memory is not supported; send the data"
            )
        if len(tensor.shape) > MAX_DIMENSIONS:
            raise InvalidRequestError(
                f"inputs.{tensor.name:.40}.shape must have at most {MAX_DIMENSIONS} dimensions; "
                f"got {len(tensor.shape)}"
            )


def _raw(
    spec: TensorSpec, tensor: pb.ModelInferRequest.InferInputTensor, raw: bytes, count: int
) -> Numbers:
    where = f"inputs.{spec.name}"
    if tensor.HasField("contents"):
        raise InvalidRequestError(f"{where} must have raw_input_contents or contents; got both")
    return from_bytes(spec, raw, count, where)


def _contents(
    spec: TensorSpec, tensor: pb.ModelInferRequest.InferInputTensor, count: int
) -> Numbers:
    field = CONTENTS.get(spec.datatype)
    if field is None:
        raise InvalidRequestError(
            f"inputs.{spec.name}: {spec.datatype} must be sent in raw_input_contents; got none"
        )
    values = getattr(tensor.contents, field)
    where = f"inputs.{spec.name}.contents.{field}"
    if len(values) != count:
        raise InvalidRequestError(f"{where} must have {count} elements; got {len(values)}")
    if any(sent.name != field for sent, _ in tensor.contents.ListFields()):
        raise InvalidRequestError(f"inputs.{spec.name}.contents must have only {field}; got more")
    return spec.numbers([*values], where)


def _wanted(
    contract: Contract, request: pb.ModelInferRequest, *, binary: bool
) -> tuple[Wanted, ...]:
    specs = [_asked_for(contract, one) for one in request.outputs]
    if len({spec.name for spec in specs}) < len(specs):
        raise InvalidRequestError("outputs must be distinct; one is named twice")
    # raw contents are those of all outputs or of none
    binary = binary or any(
        spec.datatype not in CONTENTS for spec in specs or contract.signature.outputs
    )
    return tuple(Wanted(spec, binary) for spec in specs) or contract.all_outputs[binary]


def _asked_for(
    contract: Contract, output: pb.ModelInferRequest.InferRequestedOutputTensor
) -> TensorSpec:
    for unserved in ("classification", "shared_memory_region"):
        if unserved in output.parameters:
            raise InvalidRequestError(f"outputs.{output.name:.40}: {unserved} is not supported")
    return contract.output(output.name)


def _chosen(parameters: Mapping[str, pb.InferParameter], name: str) -> Any:
    if name not in parameters:
        return None
    parameter = parameters[name]
    choice = parameter.WhichOneof("parameter_choice")
    return None if choice is None else getattr(parameter, choice)
