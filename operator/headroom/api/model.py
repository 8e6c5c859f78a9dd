"""`spec.model`: which model a replica serves, where its weights lie, and how they get there."""

from __future__ import annotations

import re
from typing import Annotated

from pydantic import Field

from headroom.api.runtime import Name, Quantity
from headroom.api.values import Rule, Value

_REPOSITORY = r"[A-Za-z0-9][-._A-Za-z0-9]{0,95}(/[A-Za-z0-9][-._A-Za-z0-9]{0,95})?"
_URI = (
    r"^(file:///[!-~]+"
    r"|pvc://[a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?(/[!-~]*)?"
    rf"|hf://{_REPOSITORY}(@[A-Za-z0-9][-._/A-Za-z0-9]*)?"
    r"|s3://[a-z0-9][-.a-z0-9]{1,61}[a-z0-9](/[!-~]*)?"
    r"|oci://[A-Za-z0-9][-._:/@A-Za-z0-9]*)?$"
)
FETCHED = ("hf", "s3")
"""Schemes of what an init container downloads."""


class Model(Value):
    """Which model a replica serves."""

    name: (
        Annotated[str, Field(max_length=128, pattern=r"^[A-Za-z0-9]([-._A-Za-z0-9]*[A-Za-z0-9])?$")]
        | None
    ) = None
    """Name under which the model is served; without it the name of the InferenceService."""
    uri: Annotated[str, Field(max_length=1024)] = ""
    """Where the weights lie: empty or file:///path (in the image), pvc://claim/path,
    hf://org/name@revision, s3://bucket/prefix, or oci://image@sha256:... (an image volume); all but
    the first two are at /models in the server's container, read-only."""
    digest: Annotated[str, Field(max_length=71, pattern=r"^sha256:[0-9a-f]{64}$")] | None = None
    """What the files fetched from hf:// or s3:// must be, or the replica does not start; of oci://
    the digest stands in the uri."""
    secret_name: Name | None = None
    """Secret in the same namespace whose keys become the environment of what fetches: HF_TOKEN, or
    AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY. The operator never reads it."""
    size_limit: Quantity = "100Gi"
    """Most that may be fetched onto the node's disk for one replica."""

    @property
    def scheme(self) -> str:
        """What stands before ://; empty where the weights are in the image."""
        return self.uri.partition("://")[0] if "://" in self.uri else ""

    @property
    def is_fetched(self) -> bool:
        """Whether an init container downloads it."""
        return self.scheme in FETCHED

    rules = (
        Rule(
            field="uri",
            cel=f"self.uri.matches(r'{_URI}')",
            holds=lambda model: re.fullmatch(_URI, model.uri) is not None,
            message="model.uri must be empty, file:///path, pvc://claim/path, "
            "hf://org/name@revision, s3://bucket/prefix or oci://image",
        ),
        Rule(
            field="uri",
            cel="!self.uri.split('/').exists(part, part == '..')",
            holds=lambda model: ".." not in model.uri.split("/"),
            message="model.uri must not contain a .. segment",
        ),
        Rule(
            field="uri",
            cel="self.uri.startsWith('hf://') || self.uri.startsWith('s3://') || "
            "(!has(self.digest) && !has(self.secretName))",
            holds=lambda model: (
                model.is_fetched or (model.digest is None and model.secret_name is None)
            ),
            message="model.digest and model.secretName must be left out beside what is not fetched "
            "from hf:// or s3://; of oci:// the digest stands in the uri, and imagePullSecrets in "
            "runtime.podTemplate",
        ),
    )
