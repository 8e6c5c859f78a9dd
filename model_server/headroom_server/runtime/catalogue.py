"""The versions that requests can reach, by name and version."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from headroom_server.errors import UnknownModelError
from headroom_server.runtime.served_model import ServedModel


class Catalogue:
    """Everything served here."""

    def __init__(self) -> None:
        self._served: dict[str, dict[int, ServedModel]] = {}
        self._reachable: tuple[ServedModel, ...] = ()
        """All served models in a tuple; read with every response."""

    def __contains__(self, name: str) -> bool:
        """Return whether a model is served."""
        return name in self._served

    def find(self, name: str, version: str | None) -> ServedModel:
        """Return a version; by default the latest that is ready, else the latest.

        Raises:
            UnknownModelError: with the models that are served here.
        """
        versions = self._served.get(name)
        if versions is None:
            known = " and ".join(map(repr, self._served)) or "no model"
            raise UnknownModelError(f"this server serves {known:.500}; got {name!r:.100}")
        if version is None:
            if len(versions) == 1:
                return next(iter(versions.values()))
            return max(versions.values(), key=lambda one: (one.runner.ready, int(one.version)))
        found = versions.get(int(version)) if version.isdecimal() and len(version) < 20 else None
        if found is None or found.version != version:
            known = " and ".join(repr(str(number)) for number in versions)
            raise UnknownModelError(f"{name!r} has version {known:.500}; got {version!r:.100}")
        return found

    def all(self) -> Iterable[ServedModel]:
        """Return everything that requests can reach."""
        return self._reachable

    def by_name(self) -> Mapping[str, Mapping[int, ServedModel]]:
        """Return the versions of each model."""
        return self._served

    def put(self, one: ServedModel) -> None:
        """Add a version."""
        self._served.setdefault(one.name, {})[int(one.version)] = one
        self._count()

    def take(self, name: str) -> list[ServedModel]:
        """Remove a model, and return its versions."""
        taken = self._served.pop(name, {})
        self._count()
        return list(taken.values())

    def _count(self) -> None:
        self._reachable = tuple(one for some in self._served.values() for one in some.values())
