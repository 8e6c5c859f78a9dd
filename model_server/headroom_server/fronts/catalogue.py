"""PURE. What the fronts know of the models that are served, as JSON."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import orjson

from headroom_server.scheduling.terms import SloClass, SloClasses
from headroom_server.tensors import Signature, TensorSpec


class Known(NamedTuple):
    """One version of a model that takes requests, under a number that no other ever gets."""

    number: int
    name: str
    version: str
    default: bool
    """Whether requests that name no version are for it."""
    max_batch_size: int
    classes: SloClasses
    signature: Signature


def dumps(models: Sequence[Known]) -> bytes:
    """All of them."""
    return orjson.dumps(
        [
            {
                **one._asdict(),
                "signature": _signature(one.signature),
                "classes": {name: slo._asdict() for name, slo in one.classes.items()},
            }
            for one in models
        ]
    )


def loads(data: bytes) -> list[Known]:
    """The inverse."""
    return [
        Known(
            **{
                **one,
                "signature": _read_signature(one["signature"]),
                "classes": {name: SloClass(**slo) for name, slo in one["classes"].items()},
            }
        )
        for one in orjson.loads(data)
    ]


def _signature(signature: Signature) -> dict[str, Any]:
    return {
        "inputs": [_spec(one) for one in signature.inputs],
        "outputs": [_spec(one) for one in signature.outputs],
        "lengths": signature.lengths,
        "batches": signature.batches,
        "mask": signature.mask and _spec(signature.mask),
    }


def _spec(spec: TensorSpec) -> tuple[str, str, tuple[int, ...]]:
    return spec.name, spec.datatype, spec.shape


def _read_signature(said: dict[str, Any]) -> Signature:
    return Signature(
        inputs=tuple(map(_read_spec, said["inputs"])),
        outputs=tuple(map(_read_spec, said["outputs"])),
        lengths=tuple(said["lengths"]),
        batches=tuple(said["batches"]),
        mask=said["mask"] and _read_spec(said["mask"]),
    )


def _read_spec(said: Sequence[Any]) -> TensorSpec:
    name, datatype, shape = said
    return TensorSpec(name, datatype, tuple(shape))
