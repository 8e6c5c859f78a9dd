"""The commands `headroom-server serve` (the default), `check`, `sample-model` and `reference`."""

from __future__ import annotations

import argparse
import logging
import os
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from headroom_server import __version__, log_lines, settings_sources
from headroom_server.settings import GROUPS, Settings, title
from headroom_server.settings_sources import CONFIG, InvalidSettingsError

log = logging.getLogger("headroom_server")


def main(arguments: Sequence[str]) -> int:
    """Run a command and return its exit code."""
    log_lines.configure()
    if arguments and arguments[0] == "check":
        return _check(arguments[1:])
    if list(arguments) == ["reference"]:
        return _reference()
    if arguments and arguments[0] == "sample-model":
        return _sample_model(arguments[1:])
    flags = _serve_parser().parse_args(arguments[arguments[:1] == ["serve"] :])
    try:
        settings = configured(vars(flags), os.environ)
    except InvalidSettingsError as error:
        log.error("%s", error)
        return 2
    for name in settings_sources.unknown_variables(os.environ):
        log.warning("%s is not a setting of this server and is ignored; check the spelling", name)
    from headroom_server.composition import run  # noqa: PLC0415 - `check` and `--help` need none

    return run(settings)


def configured(flags: Mapping[str, object], environment: Mapping[str, str]) -> Settings:
    """Return the settings, including the file named by the flag or by HEADROOM_CONFIG.

    Raises:
        InvalidSettingsError: one line per wrong key, with the rule and the value.
    """
    layers = [settings_sources.from_flags(flags), settings_sources.from_environment(environment)]
    path = str(flags.get(CONFIG) or environment.get(settings_sources.variable(CONFIG), ""))
    if path:
        try:
            layers.append(settings_sources.from_file(Path(path).read_bytes(), path))
        except OSError as error:
            called = settings_sources.flag if flags.get(CONFIG) else settings_sources.variable
            raise InvalidSettingsError(
                f"{called(CONFIG)} must be a readable file; got {path}: {error.strerror}"
            ) from error
    return settings_sources.merged(layers)


def _serve_parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="headroom-server serve",
        usage="headroom-server [serve] [--config FILE] [--KEY VALUE ...]",
        description="Serve models until SIGTERM. Every flag can also be set as an environment "
        "variable HEADROOM_* or as a key of the TOML file. Flags take precedence over variables, "
        "variables over the file. Other commands: `headroom-server check REPOSITORY` checks a "
        "model repository, `headroom-server sample-model FOLDER` makes a small language model of "
        "random weights, `headroom-server reference` prints the reference.",
        argument_default=argparse.SUPPRESS,
        allow_abbrev=False,
    )
    parser.add_argument("--version", action="version", version=f"headroom-server {__version__}")
    parser.add_argument(settings_sources.flag(CONFIG), help="TOML file with the keys below.")
    for group in GROUPS:
        flags = parser.add_argument_group(title(group))
        for key, field in group.model_fields.items():
            default = "" if field.default in (None, "", ()) else f" Default: {field.default}."
            meaning = " ".join((field.description or "").split()).replace("%", "%%")
            flags.add_argument(settings_sources.flag(key), metavar="VALUE", help=meaning + default)
    return parser


def _check(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(
        prog="headroom-server check",
        description="Check a model repository without a device. Prints one line per model. "
        "Exits with 1 if a model is invalid.",
        allow_abbrev=False,
    )
    parser.add_argument("repository", type=Path, help="Folder of the model repository.")
    parser.add_argument(
        "--trusted",
        action="store_true",
        help="Assume HEADROOM_REPOSITORY_TRUSTED=true.",
    )
    given = parser.parse_args(arguments)
    from headroom_server.repository.checking import check  # noqa: PLC0415

    findings = check(given.repository, trusted=given.trusted)
    for finding in findings:
        print(finding)
    return int(not all(finding.sound for finding in findings))


def _sample_model(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(
        prog="headroom-server sample-model",
        description="Make a small language model of random weights, to try the server with.",
        allow_abbrev=False,
    )
    parser.add_argument("folder", type=Path, help="Folder to create.")
    parser.add_argument("--hidden-size", type=int, default=64, help="Width; a multiple of 8.")
    parser.add_argument("--layers", type=int, default=2, help="Number of layers.")
    given = parser.parse_args(arguments)
    if given.hidden_size < 8 or given.hidden_size % 8 or given.layers < 1:
        parser.error("--hidden-size must be a multiple of 8, and --layers at least 1")
    from headroom_server.repository.random_llama import (  # noqa: PLC0415
        LlamaSize,
        write_random_llama,
    )

    size = LlamaSize(
        hidden_size=given.hidden_size,
        layers=given.layers,
        intermediate_size=4 * given.hidden_size,
    )
    try:
        write_random_llama(given.folder, size)
    except OSError as error:
        log.error("%s must be a new folder: %s", given.folder, error.strerror)
        return 1
    print(given.folder.resolve())
    return 0


def _reference() -> int:
    from headroom_server.reference.page import page  # noqa: PLC0415

    sys.stdout.write(page())
    return 0
