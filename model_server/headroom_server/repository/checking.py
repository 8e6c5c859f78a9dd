"""Checks a model repository without a device and without torch.

Checks everything that is known without running code: descriptions, files, digests, names, types and
shapes of weights, the kind of a program, warm-up samples against the inputs. What a user's class
computes is only known by running it.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from headroom_server.engine import LoadError
from headroom_server.repository import folder, safetensors_header, samples
from headroom_server.repository.description import Description
from headroom_server.repository.formats import DESCRIPTION, untrusted, untrusted_class
from headroom_server.repository.huggingface import model_folder
from headroom_server.repository.layouts import LAYOUTS, Layout, layout
from headroom_server.repository.programs import check_archive
from headroom_server.repository.signatures import agreed
from headroom_server.signature import Signature


@dataclass(frozen=True, slots=True)
class Finding:
    """The result for one version of a model."""

    model: str
    errors: tuple[str, ...]
    summary: str = ""

    @property
    def sound(self) -> bool:
        """Whether a server would load it, as far as can be checked here."""
        return not self.errors

    def __str__(self) -> str:
        """Format as one line."""
        text = "; ".join(self.errors) if self.errors else self.summary
        return f"{'ok' if self.sound else 'wrong':<6} {self.model}: " + " ".join(text.split("\n"))


def check(root: Path, *, trusted: bool) -> list[Finding]:
    """Return a finding per version of each model, at least one."""
    try:
        if (generating := model_folder(root)) is not None:
            summary = "a language model, served by generating text; it is checked when it is loaded"
            return [Finding(str(generating), (), summary)]
        repository = folder.scan(root, "model")
    except LoadError as error:
        return [Finding(str(root), (str(error),))]
    findings = [Finding(name, (why,)) for name, why in repository.problems.items()]
    for name, versions in repository.models.items():
        findings += [
            _finding(f"{name}/{number}", repository.root, path, trusted=trusted)
            for number, path in versions.items()
        ]
    nothing = f"the repository contains no model: add <model>/{DESCRIPTION} with its weights"
    return sorted(findings, key=lambda one: one.model) or [Finding(str(root), (nothing,))]


def _finding(name: str, root: Path, path: Path, *, trusted: bool) -> Finding:
    try:
        one = folder.describe(root, path)
    except LoadError as error:
        return Finding(name, tuple(str(error).splitlines()))
    if one.engine == "emulated":
        return Finding(name, (), "emulated: a device that only spends time")
    errors: list[str] = []

    def note(step: Callable[[], object]) -> object:
        """Continue after an error, so that one run reports all."""
        try:
            return step()
        except LoadError as error:
            errors.append(str(error))
            return None

    reason = untrusted(one.format, trusted=trusted)
    if reason is None and one.architecture is not None and one.is_class:
        reason = untrusted_class(one.architecture, trusted=trusted)
    if reason is not None:
        errors.append(reason)
    known = note(lambda: _layout(one))
    own = known if isinstance(known, Layout) else None
    if not one.is_class or one.weights or one.sha256:
        note(lambda: _check_weights(one, root, path, own))
    signature = None
    if not errors and (own is not None or one.declared is not None):
        signature = note(lambda: agreed(one, own.signature if own else None))
    if isinstance(signature, Signature):
        shapes = signature
        note(lambda: samples.works(one.warm_up, shapes))
    return Finding(name, tuple(errors), _summary(one))


def _layout(one: Description) -> Layout | None:
    """Return a registered architecture's layout; None for a program or an importable class.

    Raises:
        LoadError: the architecture or class does not exist.
    """
    if one.architecture is None:
        return None
    if one.is_class:
        package = one.architecture.partition(":")[0].partition(".")[0]
        if not _can_be_found(package):
            raise LoadError(
                f"architecture: {one.architecture} cannot be imported here: put the folder or "
                f"archive with {package} on PYTHONPATH"
            )
        return None
    found = layout(one.architecture, one.parameters)
    if found is None:
        raise LoadError(
            f"architecture must be one of {sorted(LAYOUTS)}, or module:Class; got "
            f"{one.architecture!r}"
        )
    return found


def _can_be_found(package: str) -> bool:
    try:
        return importlib.util.find_spec(package) is not None
    except ValueError:  # this program's own __main__, which has no spec
        return False


def _check_weights(one: Description, root: Path, path: Path, known: Layout | None) -> None:
    name = one.weights_name
    file = folder.weights(root, path, name)
    if one.sha256 is not None:
        folder.check_digest(name, folder.sha256(file), one.sha256)
    try:
        if one.format.is_program:
            check_archive(file, one.format, name)
        elif not one.is_class:
            _check_safetensors(file, known)
    except OSError as error:
        raise LoadError(f"{name}: cannot be read: {error.strerror}") from error


def _check_safetensors(file: Path, known: Layout | None) -> None:
    with file.open("rb") as opened:
        start = opened.read(safetensors_header.LENGTH_BYTES)
        header = opened.read(safetensors_header.header_bytes(start, file.name))
    found = safetensors_header.parse(header, file.stat().st_size, file.name)
    if known is not None:
        safetensors_header.compare(found, known.weights, file.name)


def _summary(one: Description) -> str:
    shapes = [f"lengths {list(one.lengths)}"] if one.lengths else []
    shapes += [f"batches {list(one.batches)}"] if one.batches else []
    unknown = ["what the class takes is known when it runs"] if one.is_class else []
    return ", ".join([one.architecture or f"format {one.format}", *shapes, *unknown])
