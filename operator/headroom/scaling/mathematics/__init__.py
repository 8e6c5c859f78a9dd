"""Mathematics that several parts use: chance, bisection, arrays, and flags of replicas."""
