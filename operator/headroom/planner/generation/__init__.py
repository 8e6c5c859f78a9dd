"""Plans services that generate: replicas, pools, and the settings of their servers. Pure."""
