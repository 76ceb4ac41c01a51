"""The version, in one place for run files and the command line."""

__version__ = "0.1.0"
