"""Step 2 of a tick: from the gathered values to the desired number of replicas. Pure."""
