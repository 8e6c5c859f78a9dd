"""`spec.model`: the model that each replica serves, and where its files come from."""

from __future__ import annotations

import re
from typing import Annotated

from pydantic import Field

from headroom.api.service_spec.pod_template import Name
from headroom.api.service_spec.quantities import Bytes
from headroom.api.text_forms import NAME_OF_MODEL, TextForm
from headroom.api.values import Rule, Value

_REPOSITORY = r"[A-Za-z0-9][-._A-Za-z0-9]{0,95}(/[A-Za-z0-9][-._A-Za-z0-9]{0,95})?"
_URI = (
    r"^(file:///[!-~]+"
    r"|pvc://[a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?(/[!-~]*)?"
    rf"|hf://{_REPOSITORY}(@[A-Za-z0-9][-._/A-Za-z0-9]*)?"
    r"|s3://[a-z0-9][-.a-z0-9]{1,61}[a-z0-9](/[!-~]*)?"
    r"|oci://[A-Za-z0-9][-._:/@A-Za-z0-9]*)?$"
)
_DIGEST = TextForm(
    "^sha256:[0-9a-f]{64}$", "must be sha256: and 64 digits of 0-9 and a-f, as the download prints"
)
FETCHED = ("hf", "s3")
"""URI schemes that an init container downloads."""


class Model(Value):
    """Model that each replica serves."""

    name: Annotated[str, Field(max_length=128), NAME_OF_MODEL] | None = None
    """Name under which the model is served. Default: the name of the InferenceService."""
    uri: Annotated[str, Field(max_length=1024)] = ""
    """Location of the model: empty or file:///path (in the image), pvc://claim/path,
    hf://org/name@revision, s3://bucket/prefix, or oci://image@sha256:... (an image volume). All but
    the first two are mounted read-only at /models in the server's container."""
    digest: Annotated[str, Field(max_length=71), _DIGEST] | None = None
    """Digest of the files from hf:// or s3://; a replica with other files does not start. For
    oci://, put the digest in the uri."""
    secret_name: Name | None = None
    """Secret in the same namespace whose keys become environment variables of the download:
    HF_TOKEN, or AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY. The operator never reads it."""
    size_limit: Bytes = "100Gi"
    """Maximum size of the download on the node's disk, per replica."""

    @property
    def scheme(self) -> str:
        """The URI scheme; empty where the model is in the image."""
        return self.uri.partition("://")[0] if "://" in self.uri else ""

    @property
    def is_fetched(self) -> bool:
        """Whether an init container downloads the model."""
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
            message="model.digest and model.secretName must not be set unless model.uri starts "
            "with hf:// or s3://; for oci:// put the digest in the uri and imagePullSecrets in "
            "runtime.podTemplate",
        ),
    )
