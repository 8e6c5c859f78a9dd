"""The routes of one term of leadership: each service's port, or why it has none."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field

from headroom.api import InferenceService
from headroom.controller.act.child_writer import ChildWriter
from headroom.controller.ports import Manifest
from headroom.controller.routing import port_numbers
from headroom.controller.routing.handover import RETIRED_AFTER_S
from headroom.controller.routing.route_writer import Routed

_log = logging.getLogger(__name__)


@dataclass(slots=True)
class RouteTable:
    """Ports by service. Computes only: nothing is read or written."""

    routed: dict[str, Routed] = field(default_factory=dict)
    """Routed services by UID, as the present leadership knows them."""
    refused: dict[str, str] = field(default_factory=dict)
    """Reason why a service in Gateway mode has no port, by UID."""
    failed: Mapping[str, str] = field(default_factory=dict)
    """Reason why a service has no configuration, by its key."""
    left_out: Mapping[str, str] = field(default_factory=dict)
    """Reason why a service is not published as it is, by its key: a bound of its namespace."""
    waiting: set[str] = field(default_factory=set)
    """Services whose ports have to be tried first, by UID."""
    reserved: dict[int, str] = field(default_factory=dict)
    """Ports recorded in namespaces whose services are unknown, with the keys of the services."""

    def restore(
        self,
        slices: Sequence[Manifest],
        services: Mapping[str, Manifest],
        unread: Collection[str] = (),
        per_namespace: int = port_numbers.PER_NAMESPACE,
    ) -> None:
        """Start from the ports that an earlier operator recorded in these slices.

        Those recorded in the `unread` namespaces, whose services are unknown, are kept free.
        """
        self.routed = _routed(port_numbers.read(slices, services))
        self.reserved = {}
        for namespace in unread:
            own = [one for one in slices if one["metadata"]["namespace"] == namespace]
            self.reserved |= port_numbers.unverified(own, per_namespace)

    def adopt(
        self, namespace: str, slices: Sequence[Manifest], services: Mapping[str, Manifest]
    ) -> None:
        """Go on with the recorded ports of a namespace whose services are known from now on."""
        taken = [routed.port for routed in self.routed.values()]
        self.routed |= _routed(port_numbers.read(slices, services, taken))
        of_it = f"{namespace}/"
        self.reserved = {port: k for port, k in self.reserved.items() if not k.startswith(of_it)}

    def assign(
        self,
        known: Mapping[str, InferenceService],
        per_namespace: int,
        is_vacant: Callable[[int], bool | None] = lambda _: True,
    ) -> None:
        """Assign every service in Gateway mode a port; release those of deleted services.

        A service whose port is not known to be vacant yet gets none in this round.
        """
        for uid in [uid for uid in self.routed if uid not in known]:
            del self.routed[uid]
        taken = {*self.reserved, *(routed.port for routed in self.routed.values())}
        held = Counter(known[uid].namespace for uid in self.routed)
        refused: dict[str, str] = {}
        self.waiting.clear()
        for uid, service in known.items():
            if service.spec.routing.mode != "Gateway" or uid in self.routed:
                continue
            if held[service.namespace] >= per_namespace:
                refused[uid] = (
                    f"services of the namespace have all {per_namespace} ports of the gateways "
                    "that one namespace may have (--gateway-ports-per-namespace)"
                )
                continue
            port = port_numbers.choose(uid, taken)
            while port is not None and is_vacant(port) is False:
                taken.add(port)
                port = port_numbers.choose(uid, taken)
            if port is not None and is_vacant(port) is None:
                self.waiting.add(uid)
                continue
            if port is None:
                refused[uid] = f"all {port_numbers.PORTS} ports of the gateways are taken"
                continue
            taken.add(port)
            held[service.namespace] += 1
            self.routed[uid] = Routed(port=port, writer=ChildWriter())
        for uid in refused.keys() - self.refused.keys():
            _log.error("%s/%s: %s", known[uid].namespace, known[uid].name, refused[uid])
        self.refused = refused

    def retire(self, known: Mapping[str, InferenceService], now_s: float) -> bool:
        """Release ports whose slice has been empty for long enough; return whether any was."""
        retired = [
            uid
            for uid, routed in self.routed.items()
            if not (uid in known and known[uid].spec.routing.mode == "Gateway")
            and not routed.addresses
            and (routed.emptied_s is None or not 0 <= now_s - routed.emptied_s < RETIRED_AFTER_S)
        ]
        for uid in retired:
            del self.routed[uid]
        return bool(retired)


def _routed(recorded: Mapping[str, port_numbers.Recorded]) -> dict[str, Routed]:
    return {uid: Routed.recorded(one) for uid, one in recorded.items()}
