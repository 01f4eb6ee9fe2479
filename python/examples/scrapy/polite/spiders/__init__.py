"""One spider for each example of the draft."""
