"""The device's thread: start-up, batches in three steps, failures narrowed down."""
