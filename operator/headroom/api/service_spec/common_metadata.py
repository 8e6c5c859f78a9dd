"""`spec.commonMetadata`: labels and annotations of every object that belongs to the service.

They are a field, and not those of the InferenceService itself: its labels would tell GitOps tools
that the children are theirs to delete, and each label that is added would replace all pods.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Annotated

from pydantic import Field

from headroom.api.kind import GROUP
from headroom.api.text_forms import TextForm
from headroom.api.values import Rule, Value

OWN_LABELS = ("app.kubernetes.io/managed-by", "app.kubernetes.io/name")
"""Labels that every child has, besides those of Headroom's group."""

MOST = 32
_NAME = r"^([a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?/)?[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?$"
_VALUE = r"^([A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?)?$"
_LabelValue = Annotated[
    str,
    Field(max_length=63),
    TextForm(_VALUE, "must be the value of a label: letters, digits, -, _ and ."),
]
_Text = Annotated[str, Field(max_length=4096)]


def _refused(keys: Iterable[str]) -> list[str]:
    return [key for key in keys if key.startswith(f"{GROUP}/") or key in OWN_LABELS]


def _wrong(keys: Iterable[str]) -> list[str]:
    return [key for key in keys if not re.fullmatch(_NAME, key)]


def _rules(field: str) -> tuple[Rule, ...]:
    def keys(metadata: CommonMetadata) -> Iterable[str]:
        return getattr(metadata, field) or ()

    return (
        Rule(
            field=field,
            cel=f"!has(self.{field}) || self.{field}.all(k, !k.startsWith('{GROUP}/') && "
            f"!(k in {list(OWN_LABELS)}))",
            holds=lambda metadata: not _refused(keys(metadata)),
            message=f"keys of commonMetadata.{field} must not begin with {GROUP}/ and must not be "
            f"{' or '.join(OWN_LABELS)}, which the operator sets",
            got=lambda metadata: ", ".join(_refused(keys(metadata))),
        ),
        Rule(
            field=field,
            cel=f"!has(self.{field}) || self.{field}.all(k, k.matches('{_NAME}'))",
            holds=lambda metadata: not _wrong(keys(metadata)),
            message=f"keys of commonMetadata.{field} must be names as Kubernetes has them, such as "
            "team or example.com/cost-center",
            got=lambda metadata: ", ".join(_wrong(keys(metadata))),
        ),
    )


class CommonMetadata(Value):
    """Labels and annotations of every object that the operator creates for the service."""

    labels: Annotated[dict[str, _LabelValue], Field(max_length=MOST)] | None = None
    """Labels, for example of the team and the cost center. Labels of the operator's own objects
    cannot be replaced."""
    annotations: Annotated[dict[str, _Text], Field(max_length=MOST)] | None = None
    """Annotations, for example the cloud role of the ServiceAccount."""

    rules = (*_rules("labels"), *_rules("annotations"))
