"""What is measured of a server: rates, knees, lengths of texts, faults, a soak."""
