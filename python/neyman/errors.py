"""What neyman raises. Every one of them is a `neyman.Error`, and the built-in error that it is a
kind of: code that knows nothing of neyman catches it as usual."""

from __future__ import annotations

__all__ = ["ArgumentError", "Error", "FileError", "SimulatorError", "StudyError"]


class Error(Exception):
    """Base of everything that neyman raises."""


class ArgumentError(Error, ValueError):
    """An argument does not fit: "function: name is value, but must be condition"."""


class FileError(Error, OSError):
    """A file cannot be read or written, or does not hold what it should."""


class SimulatorError(Error, RuntimeError):
    """A simulator that is not part of the library failed; the message names θ and the reason."""


class StudyError(Error, ValueError):
    """A study has problems; `problems` has all of them, as (key, message)."""

    problems: list[tuple[str, str]] = []
