"""The options of `headroom run`: a module per topic, each with its options and what they say."""
