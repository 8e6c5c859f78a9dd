"""The tables of `model.toml` as frozen values; `description` combines them. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import pairwise
from types import MappingProxyType
from typing import Annotated, Any, Self

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, FiniteFloat, model_validator

from headroom_server.datatypes import DATATYPES
from headroom_server.protocols.request_options import LAST_PRIORITY, USUAL_PRIORITY
from headroom_server.tensors import DYNAMIC, TensorSpec
from headroom_server.value_ranges import ValueRange

Whole = Annotated[int, Field(strict=True)]
Seconds = Annotated[float, Field(gt=0, le=86_400, allow_inf_nan=False)]
SecondsOrNone = Annotated[float, Field(ge=0, le=86_400, allow_inf_nan=False)]


def ascending(sizes: tuple[int, ...]) -> tuple[int, ...]:
    """Raise ValueError for sizes that are not strictly ascending."""
    if any(a >= b for a, b in pairwise(sizes)):
        raise ValueError("must be ascending, without duplicates")
    return sizes


def _dimension(size: int) -> int:
    if size != DYNAMIC and size < 1:
        raise ValueError("must be at least 1, or -1 if dynamic")
    return size


def read_only(values: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return a read-only copy."""
    return MappingProxyType(dict(values))


def nothing() -> Mapping[str, Any]:
    """Return an empty table."""
    return MappingProxyType({})


class Table(BaseModel):
    """Base of all tables; unknown fields are errors."""

    model_config = ConfigDict(frozen=True, extra="forbid", protected_namespaces=())


def _datatype(name: str) -> str:
    if name not in DATATYPES:
        raise ValueError(f"must be one of {', '.join(DATATYPES)}")
    return name


TensorName = Annotated[str, Field(min_length=1, max_length=256, strict=True)]
DatatypeName = Annotated[str, Field(strict=True), AfterValidator(_datatype)]


class Tensor(Table):
    """One input or output; the shape is that of one item, with at most one -1."""

    name: TensorName
    datatype: DatatypeName
    shape: tuple[Annotated[int, Field(strict=True, le=2**31), AfterValidator(_dimension)], ...] = (
        Field((), max_length=32)
    )
    minimum: int | FiniteFloat | None = None
    """The smallest value of an input; a request with a smaller one is refused."""
    maximum: int | FiniteFloat | None = None

    @model_validator(mode="after")
    def _one_dynamic(self) -> Self:
        self.spec()
        return self

    def spec(self) -> TensorSpec:
        """Return it as the server uses it."""
        bounded = self.minimum is not None or self.maximum is not None
        allowed = ValueRange(self.minimum, self.maximum) if bounded else None
        return TensorSpec(self.name, self.datatype, self.shape, allowed)


class Mask(Table):
    """An additional input that the server generates: 1 where an item has data, 0 for padding."""

    name: TensorName
    datatype: DatatypeName


class SloClassFields(Table):
    """Values for requests of a class that do not set their own."""

    priority: int = Field(USUAL_PRIORITY, ge=0, le=LAST_PRIORITY, strict=True)
    """0 is the most urgent."""
    deadline_s: Seconds | None = None
    """Seconds from arrival; None: no deadline."""


class Sample(Table):
    """One item, executed during warm-up; nested lists by input name."""

    inputs: dict[str, Any] = Field(min_length=1)


class Emulated(Table):
    """An emulated device: fixed + (per_item + per_token * L) * b seconds per batch.

    b is the batch size, L its padded length; L = 0 without lengths.
    """

    fixed_cost_s: SecondsOrNone = 0.006
    per_item_cost_s: SecondsOrNone = 0.0005
    per_token_cost_s: SecondsOrNone = 0.0
    lengths: Annotated[
        tuple[Annotated[Whole, Field(ge=1, le=2**31)], ...], AfterValidator(ascending)
    ] = ()
    load_s: SecondsOrNone = 1.0
    input_size: int = Field(4, ge=1, le=1_000_000, strict=True)

    @model_validator(mode="after")
    def _takes_time(self) -> Self:
        if self.fixed_cost_s + self.per_item_cost_s <= 0:
            raise ValueError("fixed_cost_s + per_item_cost_s must be above 0; got 0")
        return self


class CacheFields(Table):
    """Bytes of cached answers and their lifetime; 0 bytes: no cache."""

    bytes: int = Field(ge=0, le=1 << 40, strict=True)
    ttl_s: Seconds | None = None
