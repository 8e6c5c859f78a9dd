"""Step 2 of a tick: from what was gathered to the desired number of replicas. Pure."""
