"""The trade-off of the first page: its parameters."""
