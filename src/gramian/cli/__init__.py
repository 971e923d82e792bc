"""The command line: ``gramian --help``."""

from gramian.cli.app import main

__all__ = ["main"]
