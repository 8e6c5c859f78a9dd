"""`headroom plan`: what a user wrote, the sums of the planner, and how they are shown."""
