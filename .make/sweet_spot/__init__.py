"""The command ``sweet-spot`` and what starts the app; where it is installed, the app itself lies beside this file."""
