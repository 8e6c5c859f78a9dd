"""Passes generated tokens to the receivers of their requests; used on the server's event loop."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence

from headroom_server.generation.ports import Receive
from headroom_server.generation.values import Delivery

log = logging.getLogger("headroom_server")


class Receivers(dict[int, Receive]):
    """The receivers of requests in flight, by key."""

    def deliver(self, deliveries: Sequence[Delivery], cancel: Callable[[int], object]) -> None:
        """Hand over deliveries; a request whose receiver fails is cancelled."""
        for delivery in deliveries:
            key = delivery.key
            receive = self.get(key) if delivery.finish is None else self.pop(key, None)
            if receive is None:  # cancelled since
                continue
            try:
                receive(delivery)
            except Exception:  # a defect with one request must not stop the others' tokens
                log.exception("a delivery failed")
                cancel(key)
