"""Answers of a generating model: as JSON, as streams, and from the cache."""
