"""Owner of a constraint: the client that has it compiled. Pure."""

from __future__ import annotations

from typing import NamedTuple


class Owner(NamedTuple):
    """A client's address, and one of its tenants."""

    client: str
    tenant: str


UNNAMED = Owner("", "")
