"""State of the decision from tick to tick, and the part of it that outlives a restart."""
