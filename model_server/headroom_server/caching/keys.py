"""PURE. What makes two requests equal: model, version, signature, and every input's numbers.

The key is taken from the numbers as they lie in memory and not from a body, so that the forms of
one request (JSON, binary tensors, gRPC) have one key. The outputs that a client asks for are no
part of it: the device computes all of them, all are kept, and each answer picks its own.
Numbers are equal where their bytes are: -0.0 and 0.0 differ.
"""

from __future__ import annotations

import sys
from hashlib import blake2b
from struct import pack

from headroom_server.engine import Work
from headroom_server.protocols.binary_tensors import to_bytes
from headroom_server.tensors import Signature

KEY_BYTES = 32
FORMAT = "headroom answer 1"


class Keys:
    """Of requests to one model. `identity` tells its weights from all others'."""

    def __init__(self, identity: str, signature: Signature) -> None:
        said = repr((FORMAT, identity, signature))
        self._model = blake2b(said.encode(), digest_size=KEY_BYTES)
        self._inputs = tuple(spec.name for spec in signature.inputs)

    def key(self, work: Work) -> bytes:
        """32 bytes."""
        # items, length and signature say how many numbers each input holds, so that no two
        # requests come to the same bytes
        digest = self._model.copy()
        digest.update(pack("<QQ", work.items, work.length))
        for name in self._inputs:
            numbers = work.inputs[name]
            digest.update(numbers if sys.byteorder == "little" else to_bytes(numbers))
        return digest.digest()
