"""The version: the only place that says it. The build reads it from here, run files and the command line too."""

__version__ = "0.1.0"
