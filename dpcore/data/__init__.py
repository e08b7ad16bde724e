"""Files and columns into a `Dataset`; samples and generators. It knows no question."""
