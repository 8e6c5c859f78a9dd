"""The serving process: HTTP and gRPC listeners, signals, the drain, the exit code."""
