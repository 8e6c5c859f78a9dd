"""Leader election: one of several operators decides, and writes while its lease is valid.

`record` and `candidate` are pure: the content of a Lease, and what a candidate does about it.
`election` drives a candidate through its `election_ports`, and begins and ends a `leader_task`;
`lease_store` reads and writes the Lease; `guard` checks it before every write.
"""

from headroom.controller.leadership.candidate import Candidate, LeaseTimes
from headroom.controller.leadership.election import Election, Term
from headroom.controller.leadership.guard import LeasedCluster

__all__ = ["Candidate", "Election", "LeaseTimes", "LeasedCluster", "Term"]
