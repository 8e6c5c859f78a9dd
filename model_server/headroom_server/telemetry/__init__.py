"""Counts requests and batches, and renders metrics as Prometheus text. Pure.

- counts: accounting, generation_ledger, class_ledger, histograms
- the data of a scrape: snapshot, generation_snapshot
- the text: exposition, metrics, generation_metrics, cache_metrics
"""
