"""Front processes: they accept, parse and answer; one process keeps queue, devices and accounts."""
