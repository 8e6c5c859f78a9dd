"""Watches of InferenceServices and pods: they begin again, within each namespace's share."""
