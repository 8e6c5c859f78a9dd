"""The InferenceServices as last seen: watch cache, resync by LIST, owners of targets."""
