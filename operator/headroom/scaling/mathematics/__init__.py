"""Mathematics that several parts use: chance, bisection, and flags of replicas."""
