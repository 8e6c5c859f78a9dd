"""Our own generation engine: the device thread runs what the scheduler decides."""
