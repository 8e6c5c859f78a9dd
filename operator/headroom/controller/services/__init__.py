"""The InferenceServices as last seen: watch cache, resync by LIST, and who owns which target."""
