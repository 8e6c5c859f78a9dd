"""What a tick says: conditions, events, the error budget, and the record for a replay."""
