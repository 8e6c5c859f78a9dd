"""What users install and type: the chart, the release, and the documented commands."""
