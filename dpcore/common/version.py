"""The version that downloads and reports name."""

VERSION = "0.1.0"
