"""The utilization curve as a picture: percentiles, the target, the ceiling, the chosen point."""

from __future__ import annotations

import io
from typing import TYPE_CHECKING

from headroom.planner.errors import require
from headroom.planner.replicas import PERCENTILES, ReplicaPlan
from headroom.planner.utilization_curve import utilization_curve

if TYPE_CHECKING:
    from matplotlib.axes import Axes

FORMATS = ("svg", "png", "pdf")
_COLOURS = ("#7fb3d5", "#1f618d", "#922b21")
_SHOWN_TARGETS = 3.0
"""Latency is shown up to this many times the target, or the p95 at the chosen point."""


def curve_picture(plan: ReplicaPlan, kind: str = "svg") -> bytes:
    """Draw the curve of the chosen replicas; the same plan gives the same bytes.

    Raises ImpossiblePlan for a format that is not drawn, ImportError without matplotlib.
    """
    require(
        kind in FORMATS,
        f"the format of a plot must be one of {', '.join(FORMATS)}",
        kind,
        "Rename the file",
    )
    import matplotlib as mpl  # noqa: PLC0415  (only plots need it)
    from matplotlib.figure import Figure  # noqa: PLC0415

    with mpl.rc_context({"svg.hashsalt": "headroom", "font.size": 9}):
        figure = Figure(figsize=(6.4, 4.0), layout="constrained")
        _draw(figure.add_subplot(), plan)
        written = io.BytesIO()
        metadata = {"svg": {"Date": None}, "png": {"Software": None}, "pdf": {"CreationDate": None}}
        figure.savefig(written, format=kind, dpi=150, metadata=metadata[kind])
    return written.getvalue()


def _draw(axes: Axes, plan: ReplicaPlan) -> None:
    service, chosen = plan.service, plan.chosen
    curve = utilization_curve(service, plan.replicas)
    busy = 100 * curve.utilization
    for column, percentile in enumerate(PERCENTILES):
        axes.plot(
            busy,
            1000 * curve.latency_s[:, column],
            color=_COLOURS[column],
            label=f"p{100 * percentile:g}",
        )
    axes.axvline(100 * service.ceiling, color="#b9770e", linestyle="--", label="ceiling")
    shown_s = chosen.slo_latency_s
    if service.target_s is not None:
        shown_s = max(shown_s, service.target_s)
        axes.axhline(1000 * service.target_s, color="#616a6b", linestyle=":", label="target")
    axes.plot(
        [100 * chosen.utilization],
        [1000 * chosen.slo_latency_s],
        marker="o",
        color="black",
        linestyle="none",
        label=f"{plan.arrival_rps:g}/s on {plan.replicas}",
    )
    axes.set_xlim(0, 100)
    axes.set_ylim(0, 1000 * _SHOWN_TARGETS * shown_s)
    axes.set_xlabel("utilization, % of full-batch throughput")
    axes.set_ylabel("latency, ms")
    axes.grid(alpha=0.3)
    axes.legend(loc="upper left")
