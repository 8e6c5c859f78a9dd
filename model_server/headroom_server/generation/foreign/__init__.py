"""An engine that schedules its own iterations, behind our admission and our queue."""
