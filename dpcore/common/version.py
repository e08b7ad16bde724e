"""The version in downloads and reports."""

VERSION = "0.2.0"
