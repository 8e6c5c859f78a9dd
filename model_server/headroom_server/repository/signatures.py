"""A model's signature, from its description and from the model itself. Pure."""

from __future__ import annotations

from dataclasses import replace

from headroom_server.engine import LoadError
from headroom_server.repository.description import Description
from headroom_server.signature import Signature
from headroom_server.tensors import TensorSpec


def agreed(description: Description, own: Signature | None) -> Signature:
    """Return the model's own signature with the description's shapes, or the declared one.

    Raises:
        LoadError: both are known and differ, neither is, or lengths do not fit the shapes.
    """
    declared = description.declared
    if own is None:
        if declared is None:
            raise LoadError(
                "inputs and outputs are required, because the model does not define them"
            )
        return declared
    if declared is not None:
        for side in ("inputs", "outputs", "mask"):
            described, actual = getattr(declared, side), getattr(own, side)
            if described != actual:
                raise LoadError(
                    f"{side} must be those of the model, {_listed(actual)}; got "
                    f"{_listed(described)}"
                )
    try:
        return replace(
            own,
            inputs=own.inputs if declared is None else _ranged(own.inputs, declared.inputs),
            lengths=description.lengths or own.lengths,
            batches=description.batches or own.batches,
        )
    except ValueError as error:
        raise LoadError(f"lengths, batches: {error}") from error


def _ranged(
    own: tuple[TensorSpec, ...], declared: tuple[TensorSpec, ...]
) -> tuple[TensorSpec, ...]:
    """Return the model's inputs with the ranges of the description, where it has any."""
    return tuple(
        replace(one, value_range=described.value_range or one.value_range)
        for one, described in zip(own, declared, strict=True)
    )


def _listed(side: tuple[TensorSpec, ...] | TensorSpec | None) -> str:
    specs = side if isinstance(side, tuple) else (side,) if side else ()
    return ", ".join(f"{one.name} {one.datatype} {list(one.shape)}" for one in specs) or "none"
