"""What has happened, counted once, and told as Prometheus text."""
