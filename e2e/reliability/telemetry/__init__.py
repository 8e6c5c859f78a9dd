"""Part telemetry: generated pages, most of them faulty, through the production path."""
