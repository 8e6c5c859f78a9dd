"""A request to the API server, parsed: verb, resource, object."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum


class Verb(StrEnum):
    """A verb, as RBAC names it."""

    GET = "get"
    LIST = "list"
    WATCH = "watch"
    CREATE = "create"
    UPDATE = "update"
    PATCH = "patch"
    DELETE = "delete"


WRITES = frozenset({Verb.CREATE, Verb.UPDATE, Verb.PATCH, Verb.DELETE})
REVIEWS = frozenset({"selfsubjectaccessreviews"})
"""Kinds that are created but not stored."""
DISCOVERY = "discovery"
"""The resource of requests that ask what the server serves."""

_OF_METHOD = {
    "POST": Verb.CREATE,
    "PUT": Verb.UPDATE,
    "PATCH": Verb.PATCH,
    "DELETE": Verb.DELETE,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """One request."""

    verb: Verb
    resource: str
    """Plural, with the subresource behind a slash: `deployments/scale`."""
    namespace: str = ""
    name: str = ""
    """Empty for lists, watches and creations."""
    dry_run: bool = False

    @property
    def writes(self) -> bool:
        """Return whether it changes the cluster if it is accepted."""
        return self.verb in WRITES and not self.dry_run and self.resource not in REVIEWS

    @property
    def words(self) -> str:
        """`patch deployments/scale`, with `(dry run)` where it is one."""
        return f"{self.verb} {self.resource}" + (" (dry run)" if self.dry_run else "")


def read_call(method: str, path: str, query: Mapping[str, str]) -> Call:
    """Read `/api/v1/...` and `/apis/GROUP/VERSION/...`; any other path is discovery.

    A subresource follows a name: `/namespaces/a/deployments/b/scale`.
    """
    parts = [part for part in path.split("/") if part]
    depth = {"api": 2, "apis": 3}.get(parts[0] if parts else "", 0)
    rest = parts[depth:] if depth else []
    if not rest:
        return Call(verb=_OF_METHOD.get(method, Verb.GET), resource=DISCOVERY)
    namespace = ""
    if rest[0] == "namespaces" and len(rest) > 2:
        namespace, rest = rest[1], rest[2:]
    plural, name, *subresource = [*rest, ""][: max(2, len(rest))]
    return Call(
        verb=_verb(method, name, query),
        resource="/".join([plural, *(part for part in subresource if part)]),
        namespace=namespace,
        name=name,
        dry_run=bool(query.get("dryRun")),
    )


def _verb(method: str, name: str, query: Mapping[str, str]) -> Verb:
    if method in _OF_METHOD:
        return _OF_METHOD[method]
    if query.get("watch", "") in ("1", "true"):
        return Verb.WATCH
    return Verb.GET if name else Verb.LIST
