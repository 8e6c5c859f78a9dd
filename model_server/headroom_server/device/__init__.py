"""The device's thread: start-up, batches in three steps, isolation of failures."""
