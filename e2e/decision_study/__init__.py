"""The proof of the decision: named cells, every peer over its grid, and what the figures say."""
