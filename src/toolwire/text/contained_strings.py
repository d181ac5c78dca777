"""Scanners of one string inside brackets that the caller has read; what follows tells an inner quote from the last."""

from __future__ import annotations

from toolwire.text.json_scanner import JsonScanner
from toolwire.text.python_scanner import PythonScanner


class JsonStringInContainer(JsonScanner):
    """A scanner of a string of JSON."""

    __slots__ = ()

    plain_strings = False
    in_container = True


class PythonStringInContainer(PythonScanner):
    """A scanner of a string of Python, behind which one of the `followers` comes."""

    __slots__ = ("_followers",)

    in_container = True

    def __init__(self, followers: str) -> None:
        super().__init__()
        self._followers = followers

    def _after_string(self) -> str:
        return self._followers if not self.stack else super()._after_string()
