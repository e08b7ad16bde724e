"""The machinery of the app, which knows no question."""
