"""Cases outside the comparison, for Headroom alone: wrong claims of the cost, and faults.

A case is a cell with an added circumstance. Its *base* is the case it is compared with: the right
claim for a wrong one, and the same plant faults without the loss of telemetry for a blind one.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from decision_study.cells import CELLS, Cell
from headroom.simulator.plant import Server
from headroom.simulator.scenario import Fault, FaultKind, Scenario

WRONG_BY = 1.5
STALE_AFTER_S = 10.0
"""A signal this old is missing; decisions may still use newer ones."""
_BLIND_S, _HALF_BLIND_S, _FAULTY_S = 120.0, 600.0, 1800.0
_REFILL_S = 30.0
"""After a restart the windows are empty for this long."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """A cell with one added circumstance."""

    cell: Cell
    what: str
    base: str | None = None
    """The `what` of the case that this one is compared with."""
    claim: float | None = None
    """Factor by which the servers claim to be faster than they are."""
    faults: tuple[Fault, ...] = ()
    blind_s: tuple[float, float] | None = None
    """Interval of missing signals, in which no replica may be removed."""
    promised: bool = True
    """False for a comparison that is only shown: no autoscaler could keep it."""

    @property
    def name(self) -> str:
        """Its parts in one string."""
        return f"{self.cell.name}+{self.what}"

    @property
    def base_name(self) -> str | None:
        """Return the name of the case to compare with."""
        return None if self.base is None else f"{self.cell.name}+{self.base}"

    def scenario(self) -> Scenario:
        """Return the scenario of a run."""
        plain = self.cell.scenario()
        (workload,) = plain.workloads
        spec = workload.spec
        if self.claim is not None:
            spec = replace(spec, advertised=claimed(spec.server, self.claim))
        workloads = (replace(workload, spec=spec),)
        return replace(plain, name=self.name, workloads=workloads, faults=self.faults)


def claimed(server: Server, speed: float) -> Server:
    """Return the claimed server: every time divided by the speed."""
    return replace(server, fixed_s=server.fixed_s / speed, per_item_s=server.per_item_s / speed)


_BY_NAME = {cell.name: cell for cell in CELLS}
_LOADED: Mapping[str, float] = {
    # Under load, and after the cell's own jump, so that losses are due to the fault.
    "step/heavy/4/60s/Random": 5400.0,
    "functions-http/single/12/60s/Random": 5400.0,
}
_STEP_S = 3600.0
_CLAIMING = (
    "llm-hour/heavy/4/60s/Random",
    "ramp/heavy/12/60s/LeastInFlight",
    "functions-http/single/12/60s/Random",
    "step/heavy/4/60s/Random",
)


def _claims(cell: Cell) -> tuple[Case, ...]:
    return (
        Case(cell=cell, what="claim-right", claim=1.0),
        Case(cell=cell, what="claim-1.5x-fast", base="claim-right", claim=WRONG_BY),
        Case(cell=cell, what="claim-1.5x-slow", base="claim-right", claim=1 / WRONG_BY),
    )


def _faulty(cell: Cell, at_s: float) -> tuple[Case, ...]:
    def fault(
        kind: FaultKind, duration_s: float = _BLIND_S, share: float = 1.0, factor: float = 2.0
    ) -> Fault:
        return Fault(kind=kind, start_s=at_s, duration_s=duration_s, share=share, factor=factor)

    blindness = fault(FaultKind.SCRAPE_LOSS)
    slow = fault(FaultKind.SLOW_PODS, _FAULTY_S, share=0.01, factor=3.0)
    node = fault(FaultKind.NODE_LOSS, _FAULTY_S, share=0.25)
    blind = (at_s + STALE_AFTER_S, at_s + _BLIND_S)
    half_blind = (at_s + STALE_AFTER_S, at_s + _HALF_BLIND_S)

    def case(what: str, base: str | None, *faults: Fault, **more: object) -> Case:
        return Case(cell=cell, what=what, base=base, faults=faults, **more)  # type: ignore[arg-type]

    return (
        case("calm", None),
        case("scrape-loss", "calm", blindness, blind_s=blind),
        case("restart", "calm", fault(FaultKind.METRICS_RESTART), blind_s=(at_s, at_s + _REFILL_S)),
        case(
            "half-unscraped",
            "calm",
            fault(FaultKind.SCRAPE_LOSS, _HALF_BLIND_S, share=0.5),
            blind_s=half_blind,
        ),
        case("slow-pod", "calm", slow, promised=False),
        case("slow-pod-blind", "slow-pod", slow, blindness, blind_s=blind),
        case("node-lost", "calm", node, promised=False),
        case("node-lost-blind", "node-lost", node, blindness, blind_s=blind),
    )


def _blind_at_the_step(cell: Cell) -> Case:
    """Return the most harmful loss of telemetry, at the step itself. Shown, not promised."""
    return Case(
        cell=cell,
        what="scrape-loss-at-the-step",
        base="calm",
        faults=(Fault(kind=FaultKind.SCRAPE_LOSS, start_s=_STEP_S, duration_s=_BLIND_S),),
        blind_s=(_STEP_S + STALE_AFTER_S, _STEP_S + _BLIND_S),
        promised=False,
    )


def _blind_as_load_falls(cell: Cell) -> tuple[Case, ...]:
    """Return the loss that starts just before the first spike's replicas would be removed."""
    at_s = 885.0  # the spike ends at 720 s, and the hold 180 s later
    loss = Fault(kind=FaultKind.SCRAPE_LOSS, start_s=at_s, duration_s=_BLIND_S)
    return (
        Case(cell=cell, what="calm"),
        Case(
            cell=cell,
            what="scrape-loss-as-load-falls",
            base="calm",
            faults=(loss,),
            blind_s=(at_s + STALE_AFTER_S, at_s + _BLIND_S),
        ),
    )


CLAIMS: tuple[Case, ...] = tuple(case for name in _CLAIMING for case in _claims(_BY_NAME[name]))
FAULTS: tuple[Case, ...] = (
    *(case for name, at_s in _LOADED.items() for case in _faulty(_BY_NAME[name], at_s)),
    _blind_at_the_step(_BY_NAME["step/heavy/4/60s/Random"]),
    *_blind_as_load_falls(_BY_NAME["spikes/heavy/4/60s/Random"]),
)
EXTRAS: Mapping[str, Case] = {case.name: case for case in (*CLAIMS, *FAULTS)}
QUICK_EXTRAS = frozenset(
    case.name for case in EXTRAS.values() if case.cell.name == "step/heavy/4/60s/Random"
)
