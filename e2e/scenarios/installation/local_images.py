"""The images of this tree, as values of the chart."""

from __future__ import annotations

from cluster.images import shipped


def _value(image: shipped.Shipped) -> dict[str, str]:
    repository, _, tag = image.image.rpartition(":")
    return {"repository": repository, "tag": tag}


OPERATOR_IMAGE = _value(shipped.OPERATOR)
GATEWAY_IMAGE = _value(shipped.GATEWAY)
