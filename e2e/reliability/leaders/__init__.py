"""Part leaders: operators that compete for one Lease, and no write of an earlier leader."""
