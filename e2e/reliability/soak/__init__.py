"""Hours of operator time in minutes, with chaos, and what is left of them in memory."""
