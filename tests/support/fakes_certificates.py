"""Certificates for tests: a CA, the folders of its holders, and an API server's Secrets."""

from __future__ import annotations

import base64
import copy
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from headroom.adapters.certificates.certificate_issuer import new_ca, new_leaf
from headroom.adapters.certificates.certificate_reader import KeyPair
from headroom.adapters.certificates.server_tls import Identity, ServerTls
from headroom.certificates.values import CA_SECRET, Role
from headroom.errors import Conflict, NotFound

SYSTEM = "headroom-system"
NAMES = (CA_SECRET, *(role.secret for role in Role))


def identity(ca: KeyPair, role: Role, now_s: float | None = None, *trusted: KeyPair) -> Identity:
    """Issue a certificate for a holder that trusts this CA, or others."""
    pair = new_leaf(ca, role.dns_name(SYSTEM), time.time() if now_s is None else now_s)
    return Identity(*pair, b"".join(one.certificate for one in trusted or (ca,)))


def put(folder: Path, one: Identity) -> None:
    """Replace a holder's files at once, as the kubelet does."""
    folder.mkdir(exist_ok=True)
    version = folder / f"..{time.monotonic_ns()}"
    version.mkdir()
    for name, content in zip(("tls.crt", "tls.key", "ca.crt"), one, strict=True):
        (version / name).write_bytes(content)
        if not (folder / name).is_symlink():
            (folder / name).symlink_to(Path("..data") / name)
    temporary = folder / "..data_tmp"
    temporary.symlink_to(version.name)
    temporary.rename(folder / "..data")


def served(ca: KeyPair) -> ServerTls:
    """Return the operator's end with a certificate of this CA."""
    tls = ServerTls(time.time)
    tls.install(identity(ca, Role.OPERATOR))
    return tls


def new_authority() -> KeyPair:
    """Issue a CA now."""
    return new_ca(time.time())


@dataclass
class FakeSecrets:
    """An API server that keeps Secrets, and refuses a write at another version."""

    objects: dict[str, dict[str, Any]] = field(default_factory=dict)
    writes: list[str] = field(default_factory=list)
    breaks_after: int | None = None
    """Writes that succeed; the next one breaks."""

    @classmethod
    def of_the_manifests(cls) -> FakeSecrets:
        return cls({name: _empty(name) for name in NAMES})

    async def get(self, api_version: str, kind: str, namespace: str, name: str) -> dict[str, Any]:
        assert (api_version, kind, namespace) == ("v1", "Secret", SYSTEM)
        if name not in self.objects:
            raise NotFound(f"secrets {name!r} not found")
        return copy.deepcopy(self.objects[name])

    async def replace(self, manifest: dict[str, Any], *, field_manager: str) -> dict[str, Any]:
        assert field_manager == "headroom"
        metadata = manifest["metadata"]
        kept = self.objects[metadata["name"]]["metadata"]["resourceVersion"]
        if self.breaks_after is not None and len(self.writes) >= self.breaks_after:
            raise Conflict("broken off")
        if metadata["resourceVersion"] != kept:
            raise Conflict("changed")
        self.writes.append(metadata["name"])
        new = copy.deepcopy(manifest)
        new["metadata"]["resourceVersion"] = str(int(kept) + 1)
        self.objects[metadata["name"]] = new
        return new

    def data(self, name: str) -> dict[str, bytes]:
        found = self.objects[name].get("data") or {}
        return {key: base64.b64decode(value) for key, value in found.items()}

    def set(self, name: str, **data: bytes | str | None) -> None:
        """Set keys, with `_` for the dot; bytes are encoded, text is kept, None is deleted."""
        secret = self.objects[name].setdefault("data", {})
        for key, value in data.items():
            named = key.replace("_", ".")
            if value is None:
                secret.pop(named, None)
            else:
                secret[named] = value if isinstance(value, str) else _packed(value)


def _packed(value: bytes) -> str:
    return base64.b64encode(value).decode()


def _empty(name: str) -> dict[str, Any]:
    metadata = {"name": name, "namespace": SYSTEM, "resourceVersion": "1"}
    return {"apiVersion": "v1", "kind": "Secret", "type": "Opaque", "metadata": metadata}
