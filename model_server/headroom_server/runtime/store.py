"""Finds the models that settings and repository define, as versions that can be built."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from headroom_server.engine import LoadError
from headroom_server.repository import folder, model_uri
from headroom_server.repository.description import Description
from headroom_server.runtime.batching.runner import Runner
from headroom_server.runtime.served_model import ModelVersion
from headroom_server.settings import Settings

NO_MODEL = (
    "no model is configured: set HEADROOM_MODEL_URI to a model repository, or HEADROOM_MODEL_CLASS "
    "to a class"
)


@dataclass(frozen=True, slots=True)
class ModelSource:
    """The origin of one version of a model."""

    name: str
    number: int = 1
    root: Path | None = None
    """The repository; None if there is none."""
    directory: Path | None = None
    description: Description | None = None
    """None: the settings define the engine."""


class ModelStore:
    """Reads the repository on every call."""

    def __init__(self, settings: Settings, build: Callable[[ModelSource], Runner]) -> None:
        self._settings = settings
        self._build = build

    def configured(self) -> list[ModelVersion]:
        """Return the versions to serve from the start.

        Raises:
            LoadError: settings or repository do not define them; one line per mistake.
        """
        return [self._version(source) for source in self.sources()]

    def sources(self) -> list[ModelSource]:
        """Return where the versions to serve from the start come from; raises the same."""
        settings = self._settings
        if settings.engine == "emulated":
            return [ModelSource(settings.model_name)]
        if settings.model_class:
            root = self._root()
            return [ModelSource(settings.model_name, root=root, directory=root)]
        return self._described(self._scan(), settings.models)

    def versions(self, name: str) -> list[ModelVersion]:
        """Return the configured versions of one model; by default the latest.

        Raises:
            LoadError: the model does not exist, or its description is wrong.
        """
        named = [one for one in self._settings.models if one.partition(":")[0] == name]
        return [self._version(one) for one in self._described(self._scan(), named or [name])]

    def known(self) -> dict[tuple[str, str], str]:
        """Return name, version and problem of everything in the repository.

        Raises:
            LoadError: there is no repository.
        """
        found = self._scan()
        known = {(name, ""): problem for name, problem in found.problems.items()}
        return known | {
            (name, str(number)): ""
            for name, versions in found.models.items()
            for number in versions
        }

    def _described(self, found: folder.Repository, wanted: Sequence[str]) -> list[ModelSource]:
        sources, wrong = [], []
        for name, chosen in folder.chosen(found, wanted).items():
            for number, directory in chosen.items():
                try:
                    description = folder.describe(found.root, directory)
                except LoadError as error:
                    at = f"model {name}, version {number}"
                    wrong += [f"{at}: {line}" for line in str(error).splitlines()]
                    continue
                sources.append(ModelSource(name, number, found.root, directory, description))
        if wrong:
            raise LoadError("\n".join(wrong))
        return sources

    def _version(self, source: ModelSource) -> ModelVersion:
        return ModelVersion(source.name, source.number, lambda: self._build(source))

    def _scan(self) -> folder.Repository:
        root = None if self._settings.engine == "emulated" else self._root()
        if root is None:
            raise LoadError(NO_MODEL)
        return folder.scan(root, self._settings.model_name)

    def _root(self) -> Path | None:
        try:
            root = model_uri.directory(self._settings.model_uri)
        except ValueError as error:
            raise LoadError(f"HEADROOM_MODEL_URI: {error}") from error
        return None if root is None else Path(root)
