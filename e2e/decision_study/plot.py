"""Misses against cost of every policy with one setting for all cells, as an SVG file. Pure.

Every peer is a line through the front of its settings, connected to a dot at its defaults;
Headroom has one setting. Colours follow the reader's light or dark scheme.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from decision_study.field import Field
from decision_study.records import CLAIRVOYANT, OURS
from headroom.charts import axes
from headroom.charts.axes import Axis
from headroom.charts.markup import Markup, joined, tag
from headroom.charts.svg import label, marks, path
from headroom.simulator.report.comparison import front as best_of
from headroom.simulator.report.comparison import is_bound

WIDTH, HEIGHT = 860.0, 520.0
_LEFT, _RIGHT, _TOP, _BOTTOM = 64.0, 24.0, 46.0, 50.0
_LETTER_PX, _LINE_PX = 6.3, 13.0
_STYLE = """
svg{background:#fff;color:#1b2430;font:12px system-ui,sans-serif}
text{fill:currentColor}.head{font-size:14px;font-weight:600}.tick,.note{fill:#5b6675;font-size:11px}
.rule{stroke:#d9dee5}.way{fill:none;stroke:#9aa5b4;stroke-width:1.2}.step{fill:#9aa5b4}
.peer{fill:#52606f}.bound{fill:none;stroke:#0f7b6c;stroke-width:1.8}.bound-name{fill:#0f7b6c}
.ours{fill:#d1450b}.ours-name{fill:#d1450b;font-weight:600}
@media (prefers-color-scheme:dark){svg{background:#12161c;color:#e6eaf0}.tick,.note{fill:#9aa5b4}
.rule{stroke:#2a323d}.way{stroke:#5d6978}.step{fill:#5d6978}.peer{fill:#b4bfcc}
.bound{stroke:#4cc9b5}.bound-name{fill:#4cc9b5}.ours{fill:#ff8a50}.ours-name{fill:#ff8a50}}
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """One setting over all cells."""

    autoscaler: str
    setting: str
    misses: float
    cost: float


@dataclass(frozen=True, slots=True)
class _Box:
    left: float
    top: float
    width: float

    def overlap(self, other: _Box) -> float:
        across = min(self.left + self.width, other.left + other.width) - max(self.left, other.left)
        down = _LINE_PX - abs(self.top - other.top)
        return max(0.0, across) * max(0.0, down)


def places(field: Field) -> tuple[Place, ...]:
    """Return every setting that ran in all of Headroom's cells, by mean misses and cost ratio."""
    found: list[Place] = []
    for setting, by_cell in field.by_setting.items():
        means = field.means(setting, field.cells)
        if means is not None and means[1] is not None:
            autoscaler = next(iter(by_cell.values())).autoscaler
            found.append(
                Place(autoscaler=autoscaler, setting=setting, misses=1 - means[0], cost=means[1])
            )
    return tuple(found)


def front(field: Field) -> Markup:
    """Render the plot of a field in which Headroom and the clairvoyant ran everywhere."""
    every = places(field)
    fronts = _fronts([p for p in every if p.autoscaler != OURS and not is_bound(p.setting)])
    marked = [place for place in every if place.setting == place.autoscaler]
    shown = [*marked, *(place for best in fronts.values() for place in best)]
    across = axes.logarithmic(
        min(place.cost for place in shown),
        max(place.cost for place in shown),
        _LEFT,
        WIDTH - _RIGHT,
    )
    most = max(place.misses for place in shown)
    up = axes.root(100 * min(1.0, 1.08 * most), HEIGHT - _BOTTOM, _TOP)
    title = f"Misses against GPU-hours, one setting for all {len(field.cells)} cells"
    return tag(
        "svg",
        Markup(f"<style>{_STYLE}</style>"),
        label(_LEFT, 18, title, class_="head"),
        label(_LEFT, 34, "Dots: defaults. Lines: the best of a peer's settings.", class_="note"),
        _axes(across, up),
        *(_way(best, across, up) for best in fronts.values()),
        *(_tie(place, fronts, across, up) for place in marked),
        *(_mark(place, across, up) for place in marked),
        *_names(marked, across, up),
        xmlns="http://www.w3.org/2000/svg",
        viewBox=f"0 0 {WIDTH:g} {HEIGHT:g}",
        role="img",
        aria_label=f"{title}; the table has the same figures",
    )


def _axes(across: Axis, up: Axis) -> Markup:
    left, right, bottom = _LEFT, WIDTH - _RIGHT, HEIGHT - _BOTTOM
    parts = [_rule(left, right, up(t.value), up(t.value)) for t in up.ticks]
    parts += [
        label(left - 6, up(t.value) + 4, t.label, class_="tick", text_anchor="end")
        for t in up.ticks
    ]
    for tick in across.ticks:
        x, name = across(tick.value), f"{tick.label}x"
        parts.append(_rule(x, x, _TOP, bottom))
        parts.append(label(x, bottom + 16, name, class_="tick", text_anchor="middle"))
    cost = "GPU-hours over the clairvoyant's, mean over cells (logarithmic)"
    parts += [
        label((left + right) / 2, HEIGHT - 12, cost, text_anchor="middle"),
        label(
            0,
            0,
            "misses, mean share of the requests (square root)",
            text_anchor="middle",
            transform=f"translate(15 {(_TOP + bottom) / 2:g}) rotate(-90)",
        ),
    ]
    return joined(parts)


def _rule(x1: float, x2: float, y1: float, y2: float) -> Markup:
    return tag("line", class_="rule", x1=x1, x2=x2, y1=y1, y2=y2)


def _fronts(peers: Sequence[Place]) -> Mapping[str, tuple[Place, ...]]:
    names = dict.fromkeys(place.autoscaler for place in peers)
    return {name: best_of([p for p in peers if p.autoscaler == name]) for name in names}


def _way(best: Sequence[Place], across: Axis, up: Axis) -> Markup:
    """Draw a peer's front as a thin line, with a small dot per setting."""
    points = [(across(place.cost), up(place.misses)) for place in best]
    dots = (
        tag("circle", _says(place), class_="step", cx=x, cy=y, r=2.2)
        for place, (x, y) in zip(best, points, strict=True)
    )
    return joined((tag("path", class_="way", d=path(points)), *dots))


def _tie(
    default: Place, fronts: Mapping[str, Sequence[Place]], across: Axis, up: Axis
) -> Markup | None:
    """Draw a dotted line from a peer's defaults to its front, which may lie elsewhere."""
    x, y = across(default.cost), up(default.misses)
    ends = [(across(p.cost), up(p.misses)) for p in fronts.get(default.autoscaler, ())]
    if not ends:
        return None
    end = min(ends, key=lambda point: math.dist(point, (x, y)))
    return tag("path", class_="way", stroke_dasharray="2 3", d=path([(x, y), end]))


def _mark(place: Place, across: Axis, up: Axis) -> Markup:
    x, y = across(place.cost), up(place.misses)
    if is_bound(place.setting):
        return tag("path", _says(place), class_="bound", d=marks([(x, y)], "m0 -6l6 6l-6 6l-6 -6Z"))
    kind, size = ("ours", 7.0) if place.autoscaler == OURS else ("peer", 4.5)
    return tag("circle", _says(place), class_=kind, cx=x, cy=y, r=size)


def _says(place: Place) -> Markup:
    words = f"{place.setting}: misses {100 * place.misses:.2f} %, cost {place.cost:.2f}x"
    return tag("title", words)


def _names(marked: Sequence[Place], across: Axis, up: Axis) -> list[Markup]:
    """Label every default next to its dot, where the label covers least."""
    named = sorted(marked, key=lambda p: (p.autoscaler not in (OURS, CLAIRVOYANT), p.cost))
    taken = [_Box(across(p.cost) - 6, up(p.misses) - 6, 12) for p in named]
    labels: list[Markup] = []
    for place in named:
        x, y = across(place.cost), up(place.misses)
        width = _LETTER_PX * len(place.setting)
        tops = [y + shift for shift in (-6, -18, 6, -30, 18)]
        boxes = [_Box(left, top, width) for top in tops for left in (x + 9, x - 9 - width)]
        inside = [b for b in boxes if b.left > _LEFT and b.left + width < WIDTH - _RIGHT] or boxes
        box = min(inside, key=lambda each: sum(each.overlap(other) for other in taken))
        taken.append(box)
        bound = "bound-name" if is_bound(place.setting) else None
        kind = "ours-name" if place.autoscaler == OURS else bound
        labels.append(label(box.left, box.top + 10, place.setting, class_=kind))
    return labels
