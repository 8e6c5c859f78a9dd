"""Writes Envoy's configuration with the operator's address, and executes Envoy."""

import ctypes
import json
import os
import sys
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
PR_SET_THP_DISABLE = 41
CONFIG = Path("/tmp/envoy.json")  # noqa: S108  (an emptyDir of this pod alone)


def _is_limited() -> bool:
    """Return whether the cgroup shows this container's memory use and its limit."""
    limits = ("memory.max", "memory/memory.limit_in_bytes")
    return any((Path("/sys/fs/cgroup") / one).exists() for one in limits)


def _without_limit(config: dict[str, Any]) -> dict[str, Any]:
    """Leave out what Envoy would do near the limit; it does not start without one."""
    overload = config["overload_manager"]
    del overload["actions"], overload["resource_monitors"][0]
    return config


def main() -> None:
    """Write the configuration and execute Envoy with any extra arguments."""
    address = os.environ.get("HEADROOM_OPERATOR_XDS_SERVICE_HOST")
    if not address:
        sys.exit(
            "HEADROOM_OPERATOR_XDS_SERVICE_HOST must be set: the Service headroom-operator-xds "
            "must exist before the pod; the kubelet restarts this container"
        )
    namespace = os.environ.get("POD_NAMESPACE")
    if not namespace:
        sys.exit("POD_NAMESPACE must be set: it is part of the name in the operator's certificate")
    config = (HERE / "envoy.json").read_text().replace("{xds_address}", address)
    config = config.replace("{operator_name}", f"headroom-operator.{namespace}.svc")
    CONFIG.write_text(config if _is_limited() else json.dumps(_without_limit(json.loads(config))))
    node = os.environ.get("HOSTNAME", "headroom-gateway")
    envoy = str(HERE / "envoy")
    fixed = ["--config-path", str(CONFIG), "--service-node", node]
    fixed += ["--service-cluster", "headroom-gateway", "--drain-time-s", "20"]
    fixed += ["--drain-strategy", "immediate", "--log-level", "warning", "--disable-hot-restart"]
    # With huge pages a buffer of a few bytes would occupy 2 MiB. Kept by execv.
    ctypes.CDLL(None).prctl(PR_SET_THP_DISABLE, 1, 0, 0, 0)
    os.execv(envoy, [envoy, *fixed, *sys.argv[1:]])


if __name__ == "__main__":
    main()
