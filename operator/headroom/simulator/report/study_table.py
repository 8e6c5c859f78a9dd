"""Renders the results of sweeps and ablations as tables for a terminal."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from headroom.simulator.report import number_format
from headroom.simulator.report.comparison import Estimate
from headroom.simulator.report.studies import Effect, Tuned
from headroom.simulator.report.summary import Summary

_ABLATION = (
    "Lost: attainment with all components minus without this one, in points. Cost: GPU-hours "
    "without it over those with all."
)


def swept(found: Sequence[Tuned]) -> RenderableType:
    """Render each peer's best front, and per service which points beat Headroom."""
    parts: list[RenderableType] = []
    for (scenario, service), group in groupby(found, key=_place):
        peers = list(group)
        parts += [_fronts(f"{scenario}: {service}, best front of each peer", peers), Text()]
        parts += [_verdict(peers), Text()]
    return Group(*parts)


def _fronts(title: str, peers: Sequence[Tuned]) -> Table:
    table = _table(title, ("setting", "attainment", "GPU-hours", "x clair-\nvoyant", ""))
    for peer in peers:
        for point in peer.front:
            ratio = point.clairvoyant_ratio
            beats = peer.beating is not None and point in peer.beating
            table.add_row(
                Text(point.autoscaler),
                number_format.percent(point.attainment.mean),
                number_format.hours(point.cost),
                f"{ratio.mean:.2f}" if ratio else "-",
                "beats Headroom" if beats else "",
            )
    return table


def _verdict(peers: Sequence[Tuned]) -> Text:
    tried = sum(peer.settings for peer in peers)
    if any(peer.beating is None for peer in peers):
        return Text(f"{tried} settings; Headroom did not run here, so there is no comparison.")
    beating: list[Summary] = [point for peer in peers for point in peer.beating or ()]
    if not beating:
        return Text(
            f"No setting of {tried} beats Headroom in misses or cost and equals it in the other."
        )
    names = ", ".join(point.autoscaler for point in beating)
    return Text(f"{len(beating)} of {tried} settings beat Headroom: {names}.", style="bold")


def ablated(found: Sequence[Effect]) -> RenderableType:
    """Render the effect of each component, one table per service."""
    parts: list[RenderableType] = []
    for (scenario, service), group in groupby(found, key=_place):
        columns = ("without", "attainment", "lost, points", "cost", "flaps added")
        table = _table(f"{scenario}: {service}, Headroom without one component", columns)
        for effect in group:
            table.add_row(
                Text(effect.component),
                number_format.percent(effect.attainment),
                _signed(effect.attainment_lost, 100),
                _spread(effect.cost_ratio, ".3f"),
                _signed(effect.flaps_added, 1),
            )
        parts += [table, Text()]
    return Group(*parts, Text(_ABLATION, style="dim"))


def _place(found: Tuned | Effect) -> tuple[str, str]:
    return found.scenario, found.service


def _table(title: str, columns: Sequence[str]) -> Table:
    table = Table(
        title=Text(title, style="bold"),
        title_justify="left",
        box=None,
        pad_edge=False,
        header_style="dim",
    )
    table.add_column(columns[0], overflow="fold")
    for name in columns[1:]:
        table.add_column(name, justify="right", no_wrap=True)
    return table


def _signed(value: Estimate, factor: float) -> str:
    width = None if value.half_width is None else factor * value.half_width
    return _spread(Estimate(factor * value.mean, width), "+.2f")


def _spread(value: Estimate, form: str) -> str:
    shown = format(value.mean, form)
    if value.half_width is None:
        return shown
    return f"{shown} ±{format(value.half_width, form.removeprefix('+'))}"
