"""The promised figures, each measured beside its bound; what is compared runs side by side."""
