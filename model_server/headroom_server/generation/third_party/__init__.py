"""A third-party engine, which schedules its own iterations, behind our admission and queue."""
