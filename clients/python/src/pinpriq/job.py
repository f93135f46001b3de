"""What the jobs of both clients have in common."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any


def reason_of(error: BaseException) -> str:
    """Return why an exception failed a job: its type and its message, if that can be read."""
    kind = type(error).__qualname__
    try:
        message = str(error)
    except BaseException:
        return f"{kind}, whose message cannot be read"
    return f"{kind}: {message}" if message else kind


def check_function(function: Callable[..., Any]) -> None:
    """Raise `TypeError` if calling a function would only make a generator."""
    plain = function
    while isinstance(plain, functools.partial):
        plain = plain.func
    for each in (plain, type(plain).__dict__.get("__call__")):
        if inspect.isgeneratorfunction(each) or inspect.isasyncgenfunction(each):
            raise TypeError(
                f"{function!r} has a yield, so calling it runs nothing: it cannot be a job"
            )


def check_result(result: Any) -> None:
    """Raise `TypeError` if what a function returned is work that is not done yet."""
    if inspect.isgenerator(result) or inspect.isasyncgen(result) or inspect.isawaitable(result):
        raise TypeError(f"the function returned {type(result).__name__}, which has not run")
