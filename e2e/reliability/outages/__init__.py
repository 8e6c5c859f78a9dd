"""Part outages: every fault on every verb, under load."""
