"""A page of metrics and a profile → the quantities of one model in base units. Pure.

The position of each quantity is looked up once per page layout. A missing quantity is None; a
metric that its profile marks as lazy is zero until the server has counted something.
"""

from __future__ import annotations

import re
from weakref import WeakKeyDictionary

from headroom.profiles.values import Profile
from headroom.telemetry.errors import TelemetryError
from headroom.telemetry.pages.continued_page import continued, remembered
from headroom.telemetry.pages.exposition import ExpositionReader, Layout, Page
from headroom.telemetry.pages.page_positions import PagePositions
from headroom.telemetry.pages.reading import Reading
from headroom.telemetry.pages.recent_layouts import LayoutMemory

_ANY = "\x00"
"""Placeholder for the model's name."""
_PLAIN = re.compile(r"[\w./:@+-]+", re.ASCII)
"""Names that need no escapes."""


class ProfileReader:
    """Reads pages of servers with one profile."""

    def __init__(self, profile: Profile, memory: LayoutMemory | None = None) -> None:
        """`memory` may be shared with other readers."""
        self._profile = profile
        self._memory = memory or LayoutMemory()
        self._pages = ExpositionReader(profile.metric_names, self._memory)
        self._counters = profile.counter_names
        self._known: WeakKeyDictionary[Layout, dict[str | None, PagePositions]] = (
            WeakKeyDictionary()
        )

    def read_text(self, text: str, model: str | None, before: Reading | None = None) -> Reading:
        """Read a page in Prometheus' text format; see `read`.

        The model's name is replaced by a placeholder first, so that services share the layout of
        their pages. If that is ambiguous or the page is rejected, the original text is read.
        Raises MalformedExposition, too.
        """
        neutral = None if model is None else _neutral(text, self._profile.model_label, model)
        if neutral is not None:
            try:
                return self.read(self._pages.read(neutral), _ANY, before)
            except TelemetryError:
                pass  # the read below reports it with the page's own text
        return self.read(self._pages.read(text), model, before)

    def read(self, page: Page, model: str | None, before: Reading | None = None) -> Reading:
        """Read the quantities of the model; None reads the only model on the page.

        `before` is what the pod's last page said, whose counters go on. Raises MissingMetric or
        InvalidMetric.
        """
        alone = self._positions(page.layout, model)
        whole = continued(before.source if before else None, page, self._counters)
        if whole is not page:
            try:
                source = remembered(self._memory, page.layout, whole)
                return self._positions(whole.layout, model).read(whole.values, source)
            except TelemetryError:  # such as buckets with other bounds
                pass
        return alone.read(page.values, remembered(self._memory, page.layout, page))

    def _positions(self, layout: Layout, model: str | None) -> PagePositions:
        known = self._known.setdefault(layout, {})
        found = known.get(model)
        if found is None:
            found = known[model] = PagePositions(self._profile, layout, model)
        return found


def _neutral(text: str, label: str | None, model: str) -> str | None:
    """Replace the model's name as the label's value by `_ANY`; None if that is ambiguous.

    Equality of series does not change: `_ANY` was not on the page, and the name is no other whole
    value afterwards.
    """
    if label is None or _ANY in text or not _PLAIN.fullmatch(model):
        return None
    for before in "{,":
        text = text.replace(f'{before}{label}="{model}"', f'{before}{label}="{_ANY}"')
    return None if f'"{model}"' in text else text
