"""The version that downloads and reports name."""

VERSION = "0.2.0"
