"""Start Envoy: fill in where the operator asks to be asked, and become it."""

import os
import sys
from pathlib import Path

HERE = Path(__file__).parent
CONFIG = Path("/tmp/envoy.json")  # noqa: S108  (an emptyDir of this pod alone)


def main() -> None:
    """Write the configuration, and give the process to Envoy; extra arguments are Envoy's."""
    address = os.environ.get("HEADROOM_OPERATOR_XDS_SERVICE_HOST")
    if not address:
        sys.exit(
            "HEADROOM_OPERATOR_XDS_SERVICE_HOST is not set: the Service headroom-operator-xds must "
            "be there before the pod is; the kubelet starts this container again"
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
