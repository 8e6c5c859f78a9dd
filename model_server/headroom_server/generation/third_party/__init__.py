"""A third-party engine, which schedules its own iterations, behind the server's admission."""
