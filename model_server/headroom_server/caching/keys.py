"""Cache keys: model, version, signature and every input's numbers. Pure.

The key is computed from the numbers in memory, not from the body, so that all encodings of a
request (JSON, binary tensors, gRPC) have one key. An owner has keys of its own. The requested
outputs are not part of it: the device computes all outputs, all are cached, and each response
selects its own. Numbers are equal if their bytes are: -0.0 and 0.0 differ.
"""

from __future__ import annotations

import sys
from hashlib import blake2b
from struct import pack

from headroom_server.engine import Work
from headroom_server.protocols.binary_tensors import to_bytes
from headroom_server.signature import Signature

KEY_BYTES = 32
FORMAT = "headroom answer 1"


class Keys:
    """Computes keys for one model. `identity` distinguishes its weights from all others."""

    def __init__(self, identity: str, signature: Signature) -> None:
        identity_parts = repr((FORMAT, identity, signature))
        self._model = blake2b(identity_parts.encode(), digest_size=KEY_BYTES)
        self._inputs = tuple(spec.name for spec in signature.inputs)

    def key(self, work: Work, owner: str | None = None) -> bytes:
        """Return the key, 32 bytes; without an `owner` all tenants share it."""
        # items, length and signature determine how many numbers each input has, so that different
        # requests never produce the same bytes
        digest = self._model.copy()
        if owner is not None:
            encoded = owner.encode("utf-8", "surrogatepass")
            digest.update(pack("<Q", len(encoded)) + encoded)
        digest.update(pack("<QQ", work.items, work.length))
        for name in self._inputs:
            numbers = work.inputs[name]
            digest.update(numbers if sys.byteorder == "little" else to_bytes(numbers))
        return digest.digest()
