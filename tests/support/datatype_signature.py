"""A model with one input and one output of an element type."""

from __future__ import annotations

from headroom_server.signature import Signature
from headroom_server.tensors import TensorSpec


def signature(datatype: str) -> Signature:
    return Signature((TensorSpec("x", datatype, (2,)),), (TensorSpec("y", datatype, (2,)),))
