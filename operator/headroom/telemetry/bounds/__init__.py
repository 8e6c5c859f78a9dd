"""Physical bounds of what servers report, and the limits that they state. Pure."""
