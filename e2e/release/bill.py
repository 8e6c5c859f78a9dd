"""The SBOM of one image in CycloneDX format: equal pins give equal text."""

from __future__ import annotations

import json
import uuid
from collections.abc import Sequence
from typing import Any

from cyclonedx.model import (
    ExternalReference,
    ExternalReferenceType,
    HashAlgorithm,
    HashType,
    Property,
    XsUri,
)
from cyclonedx.model.bom import Bom, BomMetaData
from cyclonedx.model.component import Component, ComponentType
from cyclonedx.output import make_outputter
from cyclonedx.schema import OutputFormat, SchemaVersion
from packageurl import PackageURL

from release.dockerfile import Base
from release.lock import Pin

VERSION = SchemaVersion.V1_6
MARKER = "headroom:installed-where"
NAMESPACE = uuid.uuid5(uuid.NAMESPACE_DNS, "headroom.dev")


def bill(image: str, version: str, base: Base, pins: Sequence[Pin]) -> str:
    """Return the SBOM as JSON, with a line feed at the end.

    A lock gives a hash for each file that may be installed, and a wheel's is not a source
    archive's: so the hashes are those of the distribution, not of the component.
    """
    made = Component(name=image, version=version, type=ComponentType.CONTAINER, bom_ref=image)
    parts = [_base(base), *(_package(pin) for pin in pins)]
    bom = Bom(components=parts, metadata=BomMetaData(component=made))
    bom.register_dependency(made, parts)
    text = make_outputter(bom, OutputFormat.JSON, VERSION).output_as_string()
    return json.dumps(_without_chance(json.loads(text)), indent=2, sort_keys=True) + "\n"


def _without_chance(document: dict[str, Any]) -> dict[str, Any]:
    """The document without the time, its number drawn from what it says."""
    del document["metadata"]["timestamp"]
    del document["serialNumber"]
    content = json.dumps(document, sort_keys=True)
    return {**document, "serialNumber": uuid.uuid5(NAMESPACE, content).urn}


def _base(base: Base) -> Component:
    name = base.name.rpartition("/")[2]
    purl = PackageURL("oci", name=name, version=base.digest, qualifiers={"tag": base.tag})
    return Component(
        name=base.name,
        version=base.tag,
        type=ComponentType.CONTAINER,
        bom_ref=purl.to_string(),
        purl=purl,
        hashes=[_sha256(base.digest.removeprefix("sha256:"))],
    )


def _package(pin: Pin) -> Component:
    purl = PackageURL("pypi", name=pin.name, version=pin.version)
    return Component(
        name=pin.name,
        version=pin.version,
        type=ComponentType.LIBRARY,
        bom_ref=purl.to_string(),
        purl=purl,
        properties=[Property(name=MARKER, value=pin.marker)] if pin.marker else (),
        external_references=[
            ExternalReference(
                type=ExternalReferenceType.DISTRIBUTION,
                url=XsUri(purl.to_string()),
                comment="one of the files with these hashes was installed",
                hashes=[_sha256(digits) for digits in pin.sha256],
            )
        ],
    )


def _sha256(digits: str) -> HashType:
    return HashType(alg=HashAlgorithm.SHA_256, content=digits)
