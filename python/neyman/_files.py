"""Paths and whole files, with errors that say what is wrong."""

from __future__ import annotations

import os
from typing import Any

from neyman.errors import ArgumentError, FileError


def as_path(function: str, path: Any, name: str = "path") -> str:
    try:
        text = os.fspath(path)
    except TypeError:
        raise ArgumentError(f"{function}: {name} is a {type(path).__name__}, but must be a "
                            "path") from None
    if isinstance(text, bytes):
        text = os.fsdecode(text)
    if not text or "\0" in text:
        raise ArgumentError(f"{function}: {name} is {text!r}, but must name a file")
    return str(text)


def read_bytes(function: str, path: Any) -> bytes:
    name = as_path(function, path)
    try:
        with open(name, "rb") as file:
            return file.read()
    except OSError as error:
        raise FileError(f"{name}: {error.strerror}") from None


def write_bytes(function: str, path: Any, content: bytes) -> None:
    """Whole or not at all."""
    name = as_path(function, path)
    temporary = f"{name}.{os.getpid()}.tmp"
    try:
        with open(temporary, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, name)
    except OSError as error:
        if os.path.exists(temporary):
            os.unlink(temporary)
        raise FileError(f"{name}: {error.strerror}") from None
