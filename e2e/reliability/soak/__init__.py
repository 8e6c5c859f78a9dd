"""Hours of operator time in minutes, under random faults, and the memory that remains."""
