"""Text generation: requests, the scheduler of iterations, the loop that runs an executor."""
