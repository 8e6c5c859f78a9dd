"""What a run depends on, as a hash: when it changes, the run's record is stale.

    all runs   the modules that `simulate` and the autoscaler import, the arrivals, plant and faults
    Headroom   also every file of the decision, and the whole policy with the law's constants

So a change of the law makes Headroom's runs stale and no peer's.
"""

from __future__ import annotations

import ast
import hashlib
from collections.abc import Iterable, Iterator
from dataclasses import fields, is_dataclass
from functools import cache
from importlib.util import find_spec
from pathlib import Path

import numpy as np

from headroom.simulator.scenario import Scenario

_SIMULATOR = "headroom.simulator"
_DECISION = "headroom.scaling"
_VALUES = "headroom.scaling.values"
"""Enums and plain values; a peer's policy is described value by value instead."""
_ROOTS = ("headroom.simulator.run", "headroom.simulator.arrivals")
_OF_PEERS = (
    *("latency_target_s", "latency_percentile", "utilization_ceiling"),
    *("min_replicas", "max_replicas", "routing"),
)
"""What a plant and a peer read of a policy."""


def fingerprint(module: str, scenario: str, knobs: Iterable[tuple[str, float]], seed: int) -> str:
    """Return the fingerprint of a run of a described scenario under this module's autoscaler."""
    parts = (sources(module), scenario, described((tuple(knobs), seed)))
    return hashlib.blake2b("\n".join(parts).encode(), digest_size=12).hexdigest()


def described_scenario(scenario: Scenario, *, whole_policy: bool) -> str:
    """Return everything in a scenario that a run can see."""
    parts = [described((scenario.cluster, scenario.faults))]
    for workload in scenario.workloads:
        spec, policy = workload.spec, workload.spec.policy
        parts += [described(getattr(spec, f.name)) for f in fields(spec) if f.name != "policy"]
        seen = policy if whole_policy else tuple(getattr(policy, name) for name in _OF_PEERS)
        parts += [described(seen), described(workload.arrivals)]
    return "\n".join(parts)


def described(value: object) -> str:
    """Return a text that is equal for equal values, whichever process made them."""
    if isinstance(value, np.ndarray):
        digest = hashlib.blake2b(np.ascontiguousarray(value).tobytes(), digest_size=12)
        return f"{value.dtype}{value.shape}{digest.hexdigest()}"
    if is_dataclass(value) and not isinstance(value, type):
        inner = (f"{f.name}={described(getattr(value, f.name))}" for f in fields(value))
        return f"{type(value).__name__}({','.join(inner)})"
    if isinstance(value, (tuple, list)):
        return f"({','.join(map(described, value))})"
    if isinstance(value, frozenset):
        return f"{{{','.join(sorted(map(described, value)))}}}"
    if value is None or isinstance(value, (str, int, float, bool)):
        return repr(value)
    raise TypeError(f"a scenario is made of values, received {type(value).__name__}")


@cache
def sources(module: str) -> str:
    """Return the hash of all sources that a run under an autoscaler of this module executes."""
    closure = {name for root in (*_ROOTS, module) for name in _closure(root)}
    paths = [_file(name) for name in sorted(closure)]
    if uses_decision(module):
        folder = _file(_DECISION).parent
        paths += sorted(
            p for p in folder.rglob("*") if p.is_file() and "__pycache__" not in p.parts
        )
    digest = hashlib.blake2b(digest_size=12)
    for path in paths:
        digest.update(path.name.encode() + b"\0" + path.read_bytes())
    return digest.hexdigest()


@cache
def uses_decision(module: str) -> bool:
    """Return whether the module, or what it imports, imports the decision itself."""
    return any(_DECISION in _imported(name) for name in _closure(module))


@cache
def _closure(module: str) -> frozenset[str]:
    """Return the modules of the simulator, and those of the decision by name, that it needs."""
    found, waiting = {module}, [module]
    while waiting:
        for name in _imported(waiting.pop()):
            inside = name.startswith((f"{_SIMULATOR}.", f"{_DECISION}.")) and name != _VALUES
            if inside and name not in found:
                found.add(name)
                waiting.append(name)
    return frozenset(found)


@cache
def _imported(module: str) -> frozenset[str]:
    return frozenset(_names(ast.parse(_file(module).read_bytes())))


def _names(tree: ast.Module) -> Iterator[str]:
    """Yield the modules of ours that are imported anywhere in a source."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names if alias.name.startswith("headroom"))
        elif isinstance(node, ast.ImportFrom) and (node.module or "").startswith("headroom"):
            package = str(node.module)
            submodules = [f"{package}.{alias.name}" for alias in node.names]
            modules = [name for name in submodules if _exists(name)]
            yield from modules
            if len(modules) < len(submodules):
                yield package


@cache
def _exists(name: str) -> bool:
    try:
        return find_spec(name) is not None
    except ModuleNotFoundError:
        return False


@cache
def _file(module: str) -> Path:
    spec = find_spec(module)
    assert spec is not None
    assert spec.origin is not None
    return Path(spec.origin)
