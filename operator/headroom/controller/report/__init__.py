"""Step 4 of a tick: conditions, status, events, the SLO's error budget and recordings."""
