"""Counters of generating pods as tables: tokens, lengths, and histograms with wide buckets."""
