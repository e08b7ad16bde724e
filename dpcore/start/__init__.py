"""The first page's trade-off: its fields."""
