"""A bill of materials lists the packages of the lock: each version, each hash, nothing else."""

from __future__ import annotations

import json
import re
from importlib import resources
from typing import Any

import jsonschema_rs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from chart.paths import ROOT
from release.bill import MARKER, bill
from release.dockerfile import Base
from release.images import IMAGES, Image
from release.lock import LockError, Pin, pins
from release.making import bills

BASE = Base("python", "3.11-slim", f"sha256:{'b' * 64}")
PINS = (
    Pin("aiohttp", "3.14.5", ("1" * 64, "2" * 64)),
    Pin("nvidia-cublas", "13.1", ("3" * 64,), 'sys_platform == "linux"'),
)
PLACE = "http://cyclonedx.org/schema/"
HASH = st.text("0123456789abcdef", min_size=64, max_size=64)
PIN = st.builds(
    Pin,
    st.from_regex(r"[a-z][a-z0-9]{0,8}(-[a-z0-9]{1,4})?", fullmatch=True),
    st.from_regex(r"[0-9]{1,4}\.[0-9]{1,3}(\.post[0-9])?", fullmatch=True),
    st.lists(HASH, min_size=1, max_size=4, unique=True).map(lambda found: tuple(sorted(found))),
    st.sampled_from(["", 'sys_platform == "linux"']),
)


def written(pinned: list[Pin]) -> str:
    """Return the lock as `uv pip compile --generate-hashes` writes it."""
    blocks = []
    for pin in pinned:
        condition = f" ; {pin.marker}" if pin.marker else ""
        lines = [f"{pin.name}=={pin.version}{condition}"]
        lines += [f"    --hash=sha256:{digits}" for digits in pin.sha256]
        blocks.append(" \\\n".join(lines) + "\n    # via\n    #   kopf\n")
    return "".join(blocks)


def packages(document: dict[str, Any]) -> dict[str, tuple[str, set[str]]]:
    """Version and hashes of each package of a bill."""
    found = {}
    for part in document["components"]:
        if part["type"] == "library":
            (distribution,) = part["externalReferences"]
            hashes = {each["content"] for each in distribution["hashes"]}
            assert all(each["alg"] == "SHA-256" for each in distribution["hashes"])
            assert part["purl"] == f"pkg:pypi/{part['name']}@{part['version']}"
            found[part["name"]] = (part["version"], hashes)
    return found


def schema() -> jsonschema_rs.Validator:
    """CycloneDX 1.6, from the files that its library brings along."""
    folder = resources.files("cyclonedx.schema._res")
    names = [f"{stem}.SNAPSHOT.schema.json" for stem in ("spdx", "jsf-0.82", "bom-1.6")]
    known = {name: json.loads((folder / name).read_text()) for name in names}
    registry = jsonschema_rs.Registry([(PLACE + name, part) for name, part in known.items()])
    return jsonschema_rs.validator_for(known[names[-1]], registry=registry)


@given(st.lists(PIN, max_size=6, unique_by=lambda pin: pin.name))
def test_a_lock_is_read_as_it_was_written(pinned: list[Pin]) -> None:
    assert pins(written(pinned)) == tuple(sorted(pinned, key=lambda pin: pin.name))


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("aiohttp>=3 --hash=sha256:" + "1" * 64, "a pin must be name==version"),
        ("aiohttp==3.* --hash=sha256:" + "1" * 64, "a pin must be name==version"),
        ("aiohttp==3", "must have a valid SHA-256"),
        ("aiohttp==3 --hash=md5:" + "1" * 32, "must have a valid SHA-256"),
        ("aiohttp==3 --hash=sha256:" + "1" * 63, "must have a valid SHA-256"),
        ("--index-url https://packages.example", "a lock must contain only pins"),
        ("-e .", "a lock must contain only pins"),
        (written([PINS[0], PINS[0]]), "got aiohttp twice"),
    ],
)
def test_line_without_a_pin_is_rejected(text: str, said: str) -> None:
    with pytest.raises(LockError, match=re.escape(said)):
        pins(text)


def test_sbom_matches_one_written_by_hand() -> None:
    document = json.loads(bill("headroom-x", "0.1.0", BASE, PINS))
    made = document["metadata"]["component"]
    assert (made["name"], made["version"], made["type"]) == ("headroom-x", "0.1.0", "container")
    assert packages(document) == {
        "aiohttp": ("3.14.5", {"1" * 64, "2" * 64}),
        "nvidia-cublas": ("13.1", {"3" * 64}),
    }
    (base,) = [part for part in document["components"] if part["type"] == "container"]
    assert (base["name"], base["version"]) == ("python", "3.11-slim")
    assert base["hashes"] == [{"alg": "SHA-256", "content": "b" * 64}]
    assert f"python@sha256:{'b' * 64}" in base["purl"].replace("%3A", ":")
    conditional = [part for part in document["components"] if "properties" in part]
    assert [part["name"] for part in conditional] == ["nvidia-cublas"]
    assert conditional[0]["properties"] == [{"name": MARKER, "value": 'sys_platform == "linux"'}]


def test_sbom_serial_number_depends_on_content_only() -> None:
    one, same = (bill("headroom-x", "0.1.0", BASE, PINS) for _ in range(2))
    other = bill("headroom-x", "0.1.0", BASE, PINS[:1])
    assert one == same
    assert json.loads(one)["serialNumber"] != json.loads(other)["serialNumber"]
    assert "timestamp" not in one


@pytest.mark.parametrize("image", IMAGES, ids=lambda image: image.name)
def test_sbom_of_a_shipped_image_lists_its_lock_and_is_valid(image: Image) -> None:
    text = bills(ROOT, "0.1.0")[f"{image.name}-0.1.0.cdx.json"]
    schema().validate(json.loads(text))
    lock = (ROOT / image.lock).read_text()
    wanted = dict(re.findall(r"^([\w.-]+)==(\S+)", lock, re.MULTILINE))
    listed = packages(json.loads(text))
    assert {name: version for name, (version, _) in listed.items()} == wanted
    hashes = re.findall(r"--hash=sha256:(\w+)", lock)
    assert sorted(digits for _, found in listed.values() for digits in found) == sorted(hashes)
