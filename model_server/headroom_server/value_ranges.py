"""The range of an input's values, checked before a request is queued. Pure.

On a GPU an index out of range (a token beyond the vocabulary) ends the process's CUDA context:
every request in hand fails, and the replica restarts. On a CPU it fails one request.
"""

from __future__ import annotations

from dataclasses import dataclass

from headroom_server.errors import InvalidRequestError
from headroom_server.typed_arrays import Numbers

RANGED = ("INT8", "INT16", "INT32", "INT64", "UINT8", "UINT16", "UINT32", "UINT64", "FP32", "FP64")
"""Datatypes whose arrays hold the values themselves."""


@dataclass(frozen=True, slots=True)
class ValueRange:
    """The values that a request may send, limits included; None: no limit."""

    minimum: float | None = None
    maximum: float | None = None

    def __post_init__(self) -> None:
        """Raise ValueError if 0, with which requests are padded, is outside."""
        if (self.minimum or 0) > 0 or (self.maximum or 0) < 0:
            raise ValueError(
                f"minimum and maximum must include 0, which pads requests; got {self.words}"
            )

    def check_datatype(self, datatype: str) -> None:
        """Raise ValueError for a datatype that has no ranges."""
        if datatype not in RANGED:
            raise ValueError(
                f"minimum and maximum must be of a tensor of {', '.join(RANGED)}; got {datatype}"
            )

    def check(self, numbers: Numbers, where: str) -> None:
        """Check the numbers of a request.

        Raises:
            InvalidRequestError: one is outside; with `where`, the range and the number.
        """
        import numpy as np  # noqa: PLC0415 - only models with ranges need it

        values = np.asarray(numbers)
        lowest, highest = values.min().item(), values.max().item()
        below = self.minimum is not None and lowest < self.minimum
        if below or (self.maximum is not None and highest > self.maximum):
            raise InvalidRequestError(
                f"{where} must have values {self.words}; got {lowest if below else highest}"
            )

    @property
    def words(self) -> str:
        """The range for messages."""
        if self.maximum is None:
            return f"of at least {self.minimum}"
        if self.minimum is None:
            return f"of at most {self.maximum}"
        return f"from {self.minimum} to {self.maximum}"
