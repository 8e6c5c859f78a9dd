"""Number of objects that are requested in each page of a list."""

from __future__ import annotations

import pytest

from headroom.adapters.api_server.page_sizes import (
    LARGEST_OBJECT_BYTES,
    LARGEST_PAGE_BYTES,
    PAGE_BYTES,
    REMEMBERED,
    PageSizes,
)

USUAL = 4096
FIT = PAGE_BYTES // USUAL


def test_pages_have_as_many_objects_as_fit() -> None:
    pages = PageSizes().begin("/pods", 500)
    assert (pages.limit, pages.most_bytes) == (32, LARGEST_PAGE_BYTES)
    pages.was_read(32, 32 * USUAL)
    assert pages.limit == FIT
    pages.was_read(FIT, FIT * 100)
    assert pages.limit == 4 * FIT
    pages.was_read(0, 60)
    assert pages.limit == 500


def test_page_that_is_too_large_is_asked_for_with_fewer_objects() -> None:
    pages = PageSizes().begin("/pods", 500)
    assert [(pages.was_too_large(), pages.limit) for _ in range(3)] == [
        (True, 4),
        (True, 1),
        (False, 1),
    ]
    assert pages.most_bytes == LARGEST_OBJECT_BYTES
    pages.was_read(1, 1_500_000)
    assert pages.limit == 1
    for limit in (4, 16, 64):
        pages.was_read(1, 100)
        assert pages.limit == limit


@pytest.mark.parametrize(("path", "limit"), [("/pods", FIT), ("/other", 32)])
def test_size_of_the_last_list_of_a_path_is_remembered(path: str, limit: int) -> None:
    sizes = PageSizes()
    pages = sizes.begin("/pods", 500)
    pages.was_read(3, 3 * USUAL)
    sizes.ended("/pods", pages)
    assert sizes.begin(path, 500).limit == limit


def test_number_of_remembered_paths_is_bounded() -> None:
    sizes = PageSizes()
    for number in range(REMEMBERED + 1):
        pages = sizes.begin(f"/{number}", 500)
        pages.was_read(1, USUAL)
        sizes.ended(f"/{number}", pages)
    assert [sizes.begin(path, 500).limit for path in ("/0", "/1")] == [32, FIT]
