"""The shipped scenarios; `campaign.shipped` finds them by name."""
