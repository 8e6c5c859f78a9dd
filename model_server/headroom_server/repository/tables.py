"""PURE. The tables of `model.toml`, each as a frozen value; `description` puts them together."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import pairwise
from types import MappingProxyType
from typing import Annotated, Any, Self

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, model_validator

from headroom_server.scheduling.request_options import LAST_PRIORITY, USUAL_PRIORITY
from headroom_server.tensors import DATATYPES, DYNAMIC, TensorSpec

Whole = Annotated[int, Field(strict=True)]
Seconds = Annotated[float, Field(gt=0, le=86_400, allow_inf_nan=False)]
SecondsOrNone = Annotated[float, Field(ge=0, le=86_400, allow_inf_nan=False)]


def ascending(sizes: tuple[int, ...]) -> tuple[int, ...]:
    """Raise ValueError for sizes in another order, or twice the same."""
    if any(a >= b for a, b in pairwise(sizes)):
        raise ValueError("ascending, each once")
    return sizes


def _dimension(size: int) -> int:
    if size != DYNAMIC and size < 1:
        raise ValueError("at least 1, or -1 where dynamic")
    return size


def read_only(values: Mapping[str, Any]) -> Mapping[str, Any]:
    """A copy that cannot be written."""
    return MappingProxyType(dict(values))


def nothing() -> Mapping[str, Any]:
    """An empty table."""
    return MappingProxyType({})


class Table(BaseModel):
    """Fields that are read once; unknown ones are errors."""

    model_config = ConfigDict(frozen=True, extra="forbid", protected_namespaces=())


def _datatype(name: str) -> str:
    if name not in DATATYPES:
        raise ValueError(f"one of {', '.join(DATATYPES)}")
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

    @model_validator(mode="after")
    def _one_dynamic(self) -> Self:
        self.spec()
        return self

    def spec(self) -> TensorSpec:
        """As the server uses it."""
        return TensorSpec(self.name, self.datatype, self.shape)


class Mask(Table):
    """One more input, made by the server: 1 where an item has data, 0 where it was padded."""

    name: TensorName
    datatype: DatatypeName


class SloClassFields(Table):
    """What requests of a class get unless they say otherwise."""

    priority: int = Field(USUAL_PRIORITY, ge=0, le=LAST_PRIORITY, strict=True)
    """0 is the most urgent."""
    deadline_s: Seconds | None = None
    """From arrival; none: they wait as long as it takes."""


class Sample(Table):
    """One item, run while warming; nested lists by input name."""

    inputs: dict[str, Any] = Field(min_length=1)


class Emulated(Table):
    """A device that only spends time: fixed + (per_item + per_token * L) * b seconds.

    b is the batch's size, L its padded length; without lengths there is none.
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
            raise ValueError("fixed_cost_s + per_item_cost_s is above 0; got 0")
        return self


class CacheFields(Table):
    """How many bytes of answers are kept, and for how long; 0 bytes: none are."""

    bytes: int = Field(ge=0, le=1 << 40, strict=True)
    ttl_s: Seconds | None = None
