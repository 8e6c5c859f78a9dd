"""Seeded bugs in the decision and the controller's guards, and the share that the tests catch."""
