"""How far long work is: a bar in a terminal or a notebook, or a function of one's own."""

from __future__ import annotations

import importlib
import sys
from typing import Any, Callable, NamedTuple, Union

__all__ = ["ProgressState", "set_progress"]

_SHOWN_AFTER = 0.5  # seconds: what is quicker needs no bar
_WIDTH = 30


class ProgressState(NamedTuple):
    """What a progress function is told."""

    task: str  #: "train", "simulate", …
    done: int  #: of `total`
    total: int
    elapsed: float  #: seconds
    remaining: float  #: estimate in seconds; negative while unknown
    finished: bool
    unit: str = ""  #: what is counted, "events"; empty where that says nothing
    merit: str = ""  #: what else tells how well it goes, "loss"; empty: nothing
    merit_value: float = 0.0  #: as it was told last


Handler = Callable[[ProgressState], Any]
_choice: Union[bool, None, Handler] = None


def set_progress(show: Union[bool, None, Handler]) -> None:
    """Chooses how progress is shown: True and False always and never, None (the default) where
    somebody looks (a terminal or a notebook), or a function that is called with a `ProgressState`,
    some tens of times a second at most, in the thread that called neyman.

    >>> import neyman
    >>> neyman.set_progress(False)
    >>> neyman.set_progress(lambda state: print(state.task, state.done, "of", state.total))
    >>> neyman.set_progress(None)
    """
    global _choice
    _choice = show


def _in_notebook() -> bool:
    get = getattr(sys.modules.get("IPython"), "get_ipython", None)
    shell = get() if get else None
    return shell is not None and shell.__class__.__name__ == "ZMQInteractiveShell"


def _wanted() -> bool:
    if _choice is None:
        stderr = sys.stderr
        return _in_notebook() or (stderr is not None and stderr.isatty())
    return bool(_choice)


def _clock(seconds: float) -> str:
    if seconds < 0:
        return "?"
    minutes, rest = divmod(int(seconds + 0.5), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02d}:{rest:02d}" if hours else f"{minutes:02d}:{rest:02d}"


def line(state: ProgressState) -> str:
    """The bar as a text.

    >>> line(ProgressState("train", 25, 100, 3.0, 9.0, False))
    'train:  25%|███████▌                      | 25/100 [00:03<00:09]'
    >>> line(ProgressState("train", 25, 100, 3.0, 9.0, False, merit="loss", merit_value=0.5))
    'train:  25%|███████▌                      | 25/100 [00:03<00:09, loss 0.5]'
    """
    share = min(1.0, state.done / state.total) if state.total else 0.0
    eighths = int(share * _WIDTH * 8)
    bar = "█" * (eighths // 8) + (" ▏▎▍▌▋▊▉"[eighths % 8] if eighths % 8 else "")
    told = f", {state.done / state.elapsed:.3g} {state.unit}/s" if state.unit and state.elapsed else ""
    if state.merit:
        told += f", {state.merit} {state.merit_value:.4g}"
    return (f"{state.task}: {share:4.0%}|{bar:<{_WIDTH}}| {state.done}/{state.total} "
            f"[{_clock(state.elapsed)}<{_clock(state.remaining)}{told}]")


class _Notebook:
    """One output of a notebook that is drawn again and again."""

    def __init__(self) -> None:
        # By name: some versions of IPython have types, others none.
        display: Any = importlib.import_module("IPython.display").display
        self._handle = display({"text/plain": ""}, raw=True, display_id=True)

    def show(self, text: str) -> None:
        self._handle.update({"text/plain": text}, raw=True)


_notebook: Union[_Notebook, None] = None


def _show(*values: Any) -> None:
    """Called by the compiled part."""
    global _notebook
    state = ProgressState(*values)
    if callable(_choice):
        _choice(state)
        return
    if state.elapsed < _SHOWN_AFTER:
        return
    if _in_notebook():
        if _notebook is None:
            _notebook = _Notebook()
        _notebook.show(line(state))
        if state.finished:
            _notebook = None
    else:
        sys.stderr.write("\r\033[K" + line(state) + ("\n" if state.finished else ""))
        sys.stderr.flush()
