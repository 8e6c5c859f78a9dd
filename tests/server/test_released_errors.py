"""The data of a refused request is freed with its answer, without the garbage collector."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from typing import Any

import pytest

from headroom_server.errors import InvalidRequestError
from headroom_server.released_errors import release
from support.server_world import Start


@pytest.fixture
def uncollected() -> Iterator[None]:
    gc.collect()
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


def alive(kind: type) -> list[Any]:
    return [one for one in gc.get_objects() if issubclass(type(one), kind)]


class Body:
    """Something that a frame holds."""


def refused(error: InvalidRequestError | None = None) -> InvalidRequestError:
    """Return an error whose frames hold a body and the error."""

    def read(_: Body) -> None:
        try:
            raise ValueError("not a number")
        except ValueError as cause:
            raise InvalidRequestError("refused") from cause

    def explain(given: InvalidRequestError) -> None:
        raise given

    try:
        try:
            read(Body())
        except InvalidRequestError as first:
            explain(first)
    except InvalidRequestError as last:
        error = last
    assert error is not None
    return error


@pytest.mark.usefixtures("uncollected")
def test_released_error_holds_no_frame_and_keeps_its_message() -> None:
    error = refused()
    assert len(alive(Body)) == 1
    release(error)
    assert not alive(Body)
    assert (error.message, error.__cause__, error.__traceback__) == ("refused", None, None)


@pytest.mark.usefixtures("uncollected")
async def test_errors_of_refused_requests_are_not_kept(start: Start) -> None:
    world = await start()
    before = len(alive(InvalidRequestError))  # other tests have some as parameters
    for content in (b" " * 3000 + b"x", b'{"instances":[[1,2,3]]}', b'{"instances":7}'):
        response = await world.http.post("/v1/models/m:predict", content=content)
        assert response.status_code == 400
        del response
    assert len(alive(InvalidRequestError)) == before
