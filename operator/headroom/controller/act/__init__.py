"""Step 3 of a tick: write child objects that drifted, pod deletion costs and the replica count."""
