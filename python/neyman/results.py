"""How results show themselves."""

from __future__ import annotations

import dataclasses
import html
from typing import Any

import numpy as np

__all__ = ["Shown"]

_MOST = 6  # entries of a list that are shown


def plain(value: Any) -> Any:
    """Of dicts, lists, numbers and texts alone: what JSON can hold."""
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {field.name: plain(getattr(value, field.name))
                for field in dataclasses.fields(value) if field.repr}
    if isinstance(value, np.ndarray):
        return value.tolist()
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, dict):
        return {str(key): plain(entry) for key, entry in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(entry) for entry in value]
    return value


def _text(value: Any) -> str:
    if isinstance(value, float):
        return f"{value:.6g}"
    if isinstance(value, np.ndarray) and value.size > _MOST:
        return f"array of shape {value.shape}"
    if isinstance(value, np.ndarray):
        return np.array2string(value, precision=6)
    if isinstance(value, dict):
        return ", ".join(f"{key} = {_text(entry)}" for key, entry in value.items())
    if isinstance(value, (list, tuple)) and len(value) > _MOST:
        return f"{len(value)} entries"
    if isinstance(value, (list, tuple)):
        return ", ".join(_text(entry) for entry in value)
    return str(value)


class Shown:
    """A dataclass of results: `to_dict`, and a table as its repr, in a notebook too."""

    def to_dict(self) -> dict[str, Any]:
        """Everything as plain dicts, lists and numbers."""
        out: dict[str, Any] = plain(self)
        return out

    def __eq__(self, other: object) -> bool:
        return isinstance(other, type(self)) and self.to_dict() == other.to_dict()

    def __hash__(self) -> int:
        return hash(repr(self))

    def _rows(self) -> list[tuple[str, str]]:
        return [(field.name.replace("_", " "), _text(getattr(self, field.name)))
                for field in dataclasses.fields(self)  # type: ignore[arg-type]
                if field.repr]

    def __repr__(self) -> str:
        rows = self._rows()
        width = max(len(name) for name, _ in rows)
        return "\n".join([type(self).__name__] + [f"  {name:<{width}}  {text}"
                                                  for name, text in rows])

    def _repr_html_(self) -> str:
        rows = "".join(f"<tr><th style='text-align:left'>{html.escape(name)}</th>"
                       f"<td style='text-align:left'>{html.escape(text)}</td></tr>"
                       for name, text in self._rows())
        return f"<table><caption>{type(self).__name__}</caption>{rows}</table>"
