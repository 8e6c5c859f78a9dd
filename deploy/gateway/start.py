"""Writes Envoy's configuration with the operator's address, and executes Envoy."""

import os
import sys
from pathlib import Path

HERE = Path(__file__).parent
CONFIG = Path("/tmp/envoy.json")  # noqa: S108  (an emptyDir of this pod alone)


def main() -> None:
    """Write the configuration and execute Envoy with any extra arguments."""
    address = os.environ.get("HEADROOM_OPERATOR_XDS_SERVICE_HOST")
    if not address:
        sys.exit(
            "HEADROOM_OPERATOR_XDS_SERVICE_HOST must be set: the Service headroom-operator-xds must "
            "exist before the pod; the kubelet restarts this container"
        )
    config = (HERE / "envoy.json").read_text().replace("{xds_address}", address)
    CONFIG.write_text(config)
    node = os.environ.get("HOSTNAME", "headroom-gateway")
    envoy = str(HERE / "envoy")
    fixed = ["--config-path", str(CONFIG), "--service-node", node]
    fixed += ["--service-cluster", "headroom-gateway", "--drain-time-s", "20"]
    fixed += ["--drain-strategy", "immediate", "--log-level", "warning", "--disable-hot-restart"]
    os.execv(envoy, [envoy, *fixed, *sys.argv[1:]])


if __name__ == "__main__":
    main()
