"""Chooses the number of objects in a page of a list, from the sizes of those read before. Pure.

Parsing a page holds the event loop, so that all services wait: 25 to 40 ms for each megabyte, more
where a tenant fills it with small values. A page should have PAGE_BYTES, and is not read above
LARGEST_PAGE_BYTES unless it is one object.
"""

from __future__ import annotations

from dataclasses import dataclass, field

PAGE_BYTES = 256 << 10
LARGEST_PAGE_BYTES = 2 * PAGE_BYTES
LARGEST_OBJECT_BYTES = 4 << 20
"""Tenants decide how large their objects are, up to 1.5 MB, of which the API server may write six
times as much."""
USUAL_BYTES = 8 << 10
"""Size of an object before any was read."""
FEWER, MORE = 8, 4
"""One large object leaves the pages behind it small for a moment only."""
REMEMBERED = 4096


@dataclass(slots=True)
class PageLimit:
    """The number of objects of the next page of one list."""

    most: int
    limit: int
    count: int = 0
    """Objects that were read."""
    size: int = 0
    """Their bytes."""

    @property
    def most_bytes(self) -> int:
        """Bytes of the page that are read; more are an answer that is too large."""
        return LARGEST_OBJECT_BYTES if self.limit == 1 else LARGEST_PAGE_BYTES

    def was_too_large(self) -> bool:
        """Ask for fewer objects; return whether that is possible."""
        possible, self.limit = self.limit > 1, max(1, self.limit // FEWER)
        return possible

    def was_read(self, count: int, size: int) -> None:
        """Process the size of a page."""
        self.count += count
        self.size += size
        fitting = PAGE_BYTES * count // max(1, size) if count else self.most
        self.limit = max(1, min(self.most, fitting, MORE * self.limit))


@dataclass(slots=True)
class PageSizes:
    """Sizes of objects in the last list of each path."""

    _each_bytes: dict[str, int] = field(default_factory=dict)
    """Mean bytes per object by path; the path that was read last is at the end."""

    def begin(self, path: str, most: int) -> PageLimit:
        """Return the limit of the first page of a list, of at most this many objects."""
        each = self._each_bytes.get(path, USUAL_BYTES)
        return PageLimit(most, max(1, min(most, PAGE_BYTES // each)))

    def ended(self, path: str, pages: PageLimit) -> None:
        """Remember the size of the objects of a whole list."""
        if pages.count:
            self._each_bytes.pop(path, None)
            self._each_bytes[path] = max(1, pages.size // pages.count)
            if len(self._each_bytes) > REMEMBERED:
                del self._each_bytes[next(iter(self._each_bytes))]
