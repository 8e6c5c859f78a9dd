"""Programs that a cluster needs: built or installed once, and found again."""
