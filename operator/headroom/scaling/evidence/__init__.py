"""Takes in evidence that needs no model: hidden demand, obstacles, retries and missed targets."""
