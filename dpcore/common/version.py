"""The version in downloads and reports."""

VERSION = "0.3.0"
