"""The content of the Secrets with certificates: decoded, read and encoded."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Iterable, Mapping
from typing import Any

from headroom.adapters.certificates import certificate_issuer, certificate_reader
from headroom.adapters.certificates.certificate_reader import KeyPair
from headroom.certificates.rotation import Places, Source
from headroom.certificates.values import Authorities, Leaf

CERTIFICATE, KEY, BUNDLE = "tls.crt", "tls.key", "ca.crt"
"""Keys of Secrets of the type kubernetes.io/tls, which cert-manager writes too."""
PLACES = {
    "current": ("tls.crt", "tls.key"),
    "staged": ("next.crt", "next.key"),
    "previous": ("previous.crt", ""),
}
_NOTHING = KeyPair(b"", b"")

Data = dict[str, bytes]
Pairs = Mapping[str, KeyPair]


def decoded(secret: Mapping[str, Any]) -> Data:
    """Decode a Secret; a value that is not base64 counts as missing."""
    found: Data = {}
    for key, text in (secret.get("data") or {}).items():
        try:
            found[key] = base64.b64decode(text, validate=True)
        except (binascii.Error, TypeError, ValueError):
            continue
    return found


def encoded(secret: Mapping[str, Any], data: Data) -> dict[str, Any]:
    """Return the Secret with other data."""
    packed = {key: base64.b64encode(value).decode() for key, value in data.items()}
    return {"apiVersion": "v1", "kind": "Secret", **secret, "data": packed}


def pair_of(data: Data) -> KeyPair:
    """Return a holder's certificate and key."""
    return KeyPair(data.get(CERTIFICATE, b""), data.get(KEY, b""))


def leaf_of(data: Data, authorities: Iterable[bytes]) -> Leaf | None:
    """Read a holder's Secret; None where certificate or key is missing or malformed."""
    return certificate_reader.read_leaf(pair_of(data), data.get(BUNDLE, b""), authorities)


def pairs_of(data: Data) -> Pairs:
    """Return the CAs by place."""
    return {
        place: KeyPair(data.get(crt, b""), data.get(key, b""))
        for place, (crt, key) in PLACES.items()
    }


def authorities_of(pairs: Pairs) -> Authorities:
    """Read the CAs."""
    return Authorities(
        current=certificate_reader.read_ca(pairs["current"]),
        staged=certificate_reader.read_ca(pairs["staged"]),
        previous=certificate_reader.read_trusted(pairs["previous"].certificate),
    )


def placed(pairs: Pairs, wanted: Places, now_s: float) -> Pairs:
    """Move the CAs to their places, and issue the new ones."""

    def of(source: Source) -> KeyPair:
        if source is Source.NEW:
            return certificate_issuer.new_ca(now_s)
        return pairs[source.name.lower()] if source is not Source.NONE else _NOTHING

    return {
        "current": of(wanted.current),
        "staged": of(wanted.staged),
        "previous": KeyPair(of(wanted.previous).certificate, b""),
    }


def ca_data(pairs: Pairs) -> Data:
    """Return the data of the CAs' Secret."""
    data: Data = {}
    for place, (crt, key) in PLACES.items():
        if pairs[place].certificate:
            data[crt] = pairs[place].certificate
            if key:
                data[key] = pairs[place].key
    return data


def trusted(pairs: Pairs) -> dict[str, bytes]:
    """Return the CAs by fingerprint, the one that signs first."""
    return {
        one.fingerprint: pairs[place].certificate
        for place in PLACES
        if (one := certificate_reader.read_trusted(pairs[place].certificate)) is not None
    }
