"""Settings: flags take precedence over variables, then the file, then defaults."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headroom_server import __version__
from headroom_server.cli import configured, main
from headroom_server.settings import Settings
from headroom_server.settings_sources import (
    InvalidSettingsError,
    from_environment,
    from_file,
    from_flags,
    merged,
    unknown_variables,
)

FILE = b"port = 1\nmax_batch_size = 2\nmodel_name = 'filed'\nrepository_trusted = true"


def test_version_is_printed_before_any_setting_is_read(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["--version"])
    assert (ended.value.code, capsys.readouterr().out) == (0, f"headroom-server {__version__}\n")


def test_settings_take_the_layer_with_the_highest_precedence() -> None:
    settings = merged(
        [
            from_flags({"port": "3", "config": "f.toml"}),
            from_environment({"HEADROOM_PORT": "2", "HEADROOM_MAX_BATCH_SIZE": "16"}),
            from_file(FILE, "f.toml"),
        ]
    )
    assert (settings.port, settings.max_batch_size, settings.model_name) == (3, 16, "filed")
    assert (settings.repository_trusted, settings.host) == (True, "0.0.0.0")


def test_variables_ignore_case_and_split_lists_at_commas() -> None:
    environment = {"headroom_port": "7", "HEADROOM_MODELS": "bert:2, resnet", "HEADROOM_CACHE": "x"}
    settings = merged([from_environment(environment)])
    assert (settings.port, settings.models) == (7, ("bert:2", "resnet"))
    assert unknown_variables(environment) == ["HEADROOM_CACHE"]
    assert unknown_variables({"HEADROOM_CONFIG": "x", "HOME": "y"}) == []


def test_slowdown_is_a_time_and_a_factor() -> None:
    slow = {"HEADROOM_EMULATED_SLOWDOWN": "30:2"}
    assert merged([from_environment(slow)]).emulated_slowdown == (30.0, 2.0)
    for wrong in ("30", "30:0", "30:2:1", "-1:2"):
        with pytest.raises(InvalidSettingsError, match="HEADROOM_EMULATED_SLOWDOWN"):
            merged([from_environment({"HEADROOM_EMULATED_SLOWDOWN": wrong})])


@pytest.mark.parametrize(
    ("flags", "environment", "file", "line"),
    [
        ({"port": "x"}, {}, b"", "--port: .*integer.*; got 'x'"),
        ({"max_batch_size": "0"}, {}, b"", "--max-batch-size: .* 1; got '0'"),
        ({}, {"HEADROOM_PORT": "70000"}, b"port = 1", "HEADROOM_PORT: .* 65535; got '70000'"),
        ({}, {}, b"port = 70000", "f.toml: port: .* 65535; got 70000"),
        ({}, {}, b"prot = 1", "f.toml: prot: unknown setting; check the spelling"),
        ({}, {}, b"config = 'other.toml'", "f.toml: config: unknown"),
        ({}, {}, b"[server]\nport = 1", "f.toml: server: unknown"),
        ({}, {}, b"port =", "f.toml: Invalid value"),
        ({}, {}, b"\xff", "f.toml: .*utf-8"),
        ({}, {}, b"x = " + b"[" * 5000, "f.toml: "),
        (
            {},
            {"HEADROOM_MODELS": "a,a"},
            b"",
            "HEADROOM_MODELS: each model and version must be named once",
        ),
        ({}, {}, b"repository_trusted = 'perhaps'", "f.toml: repository_trusted: .*boolean"),
        ({"drain_grace_s": "inf"}, {}, b"", "--drain-grace-s: .*finite"),
    ],
)
def test_wrong_key_is_reported_with_the_name_of_its_layer(
    flags: dict[str, object], environment: dict[str, str], file: bytes, line: str
) -> None:
    with pytest.raises(InvalidSettingsError, match=f"^{line}"):
        merged([from_flags(flags), from_environment(environment), from_file(file, "f.toml")])


@pytest.mark.parametrize("by", ["flag", "variable"])
def test_settings_file_is_named_by_a_flag_or_a_variable(tmp_path: Path, by: str) -> None:
    path = tmp_path / "f.toml"
    named = ({"config": str(path)}, {}) if by == "flag" else ({}, {"HEADROOM_CONFIG": str(path)})
    with pytest.raises(
        InvalidSettingsError,
        match=r"(--config|HEADROOM_CONFIG) must be a readable file; .* No such",
    ):
        configured(*named)
    path.write_bytes(FILE)
    assert configured(*named).port == 1


@given(st.dictionaries(st.sampled_from(sorted(Settings.model_fields)), st.text(max_size=8)))
def test_arbitrary_values_are_settings_or_reported(values: dict[str, str]) -> None:
    mistakes = mistakes_of(dict(values))
    assert all(line.startswith(("--", "HEADROOM_EMULATED")) for line in mistakes)


def mistakes_of(flags: dict[str, object]) -> list[str]:
    try:
        merged([from_flags(flags)])
    except InvalidSettingsError as error:
        return str(error).splitlines()
    return []
