"""Search results: all hits counted, ranked, and the best of them in an envelope."""

from __future__ import annotations

import os
import re
from bisect import bisect_left
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Final

from toolwire.envelope.grammar import EnvelopeDocument, EnvelopeHeader, EnvelopeSection, extra
from toolwire.envelope.layout import CRUMBS, Keep
from toolwire.envelope.ranking import (
    Definitions,
    Rank,
    hot_zone,
    hottest,
    is_test_file,
    is_test_folder,
    remaining,
    zone_of,
)
from toolwire.envelope.store import MAX_KEPT
from toolwire.text.escape import escape_as_json

MAX_FOLDERS: Final = 100_000
"""Maximum number of directories in the cache."""
_PLAIN: Final = re.compile(rb"[ -~]+")


class SearchResults:
    """Collect the hits of a search: count all, and store as many as fit.

    Args:
        pattern: the pattern, to recognize definitions; "" if the hits are files.
    """

    def __init__(self, pattern: str = "") -> None:
        self._definitions = Definitions(pattern) if pattern else None
        # Of each hit that is kept: its rank, the number of its zone, its path as shown, number and text of the line.
        self._hits: list[tuple[int, int, bytes, int, bytes]] = []
        self._room = MAX_KEPT
        self._folders: dict[bytes, tuple[int, bool]] = {}  # of each the number of its zone, and whether it is of tests
        self._zones: dict[str, int] = {}
        self._counts: list[int] = []  # hits by the number of a zone
        self._path: bytes | None = None
        self._shown = self._ending = b""
        self._zone = 0
        self._test = False
        self._tests = 0
        self._not_text = 0
        self.total = 0
        self.files = 0

    def hit(self, path: bytes, number: int = 0, line: bytes = b"") -> None:
        """Add a matching line, or a file with or without a number; hits of one file follow one another."""
        if path != self._path:
            self._file(path)
        self.total += 1
        self._counts[self._zone] += 1
        self._tests += self._test
        self._room -= len(path) + len(line) + 12
        if self._room < 0:
            return
        rank = Rank.TEST if self._test else Rank.USE
        if self._definitions is not None and self._definitions.among(line, self._ending):
            rank = Rank.TEST_DEFINITION if self._test else Rank.DEFINITION
        self._hits.append((rank, self._zone, self._shown, number, line))

    def binary_file(self) -> None:
        """Count a matching file that is not text."""
        self._not_text += 1

    def _file(self, path: bytes) -> None:
        self._path = path
        self.files += 1
        folder, _, name = path.rpartition(b"/")
        entry = self._folders.get(folder)
        if entry is None:
            entry = self._folder(folder)
        self._zone, self._test = entry
        self._test = self._test or is_test_file(name)
        self._ending = name.rpartition(b".")[2].lower()
        self._shown = path if _PLAIN.fullmatch(path) else escape_as_json(os.fsdecode(path)).encode()

    def _folder(self, folder: bytes) -> tuple[int, bool]:
        name = os.fsdecode(folder)
        number = self._zones.setdefault(zone_of(f"{name}/"), len(self._zones))
        if number == len(self._counts):
            self._counts.append(0)
        if len(self._folders) >= MAX_FOLDERS:
            self._folders.clear()
        entry = self._folders[folder] = number, is_test_folder(name)
        return entry

    def compose(
        self,
        cmd: str,
        *,
        preview: int,
        limit: int,
        keep: Keep,
        annotate: bool = False,
        lines: int | None = None,
        error: str | None = None,
        stopped: str = "",
    ) -> EnvelopeDocument:
        """Return the best hits in an envelope, code before tests, and a handle for all of them if some are left out.

        Args:
            cmd: the command.
            preview: maximum number of lines.
            limit: maximum length of the envelope, in characters.
            keep: where all hits are stored.
            annotate: say why a line comes first.
            lines: number of matching lines, if the hits are files.
            error: a word for an error.
            stopped: why the search did not finish, as a sentence.
        """
        ranked = _Ranked(self._hits, self._zones, self._counts, annotate=annotate, texts=self._definitions is not None)
        header = EnvelopeHeader(
            cmd=cmd,
            matches=self.total if lines is None else lines,
            files=self.files if lines is not None or self._definitions is not None else None,
            hot_zone=hot_zone(ranked.counted, self.total),
            error=error,
            truncated=bool(stopped),
        )
        notes = [stopped] if stopped else []
        if self._not_text:
            notes.append(f"{self._not_text} {'file' if self._not_text == 1 else 'files'} that match and are no text")
        if self.total <= preview:
            document = EnvelopeDocument(header, (EnvelopeSection("\n".join(ranked.lines), tuple(notes)),))
            if len(document.text) <= limit:
                return document
        handle = keep("\n".join(ranked.lines), header)
        header = replace(header, truncated=True, handle=handle)
        if len(ranked.lines) < self.total:
            notes.insert(0, f"{self.total - len(ranked.lines)} of these were counted and not kept")
        elif not handle:
            notes.insert(0, "what is not shown is not kept")
        room = limit - len(header.text) - 2 - CRUMBS
        return EnvelopeDocument(header, self._sections(ranked, preview, room, tuple(notes)))

    def _sections(
        self, ranked: _Ranked, preview: int, room: int, notes: tuple[str, ...]
    ) -> tuple[EnvelopeSection, ...]:
        """Return some of the code and some of the tests, which get a quarter of the lines, or what code leaves."""
        code, tests = ranked.lines[: ranked.code], ranked.lines[ranked.code :]
        most = max(preview - len(tests), preview - preview // 4)
        room_used, first = _fitting(code, most, room - room // 4 if tests else room)
        _, second = _fitting(tests, preview - first, room - room_used)
        above, below = "\n".join(code[:first]), "\n".join(tests[:second])
        left = self._tests - second
        in_tests = (f"remaining {left} are test fixtures",) if left else ()
        if first == self.total - self._tests:  # all the code is shown: the tests follow it
            shown = "\n".join([*code[:first], *tests[:second]])
            crumbs = in_tests if first else (ranked.left_out(range(second)),)
            return (EnvelopeSection(shown, (*crumbs, *notes)),)
        crumb = ranked.left_out(range(first))
        if second:
            return EnvelopeSection(above, (crumb,)), EnvelopeSection(below, (*in_tests, *notes))
        of_tests = (f"{self._tests} of these are in tests",) if self._tests else ()
        return (EnvelopeSection(above, (crumb, *of_tests, *notes)),)


class _Ranked:
    """Hits in order, and as lines.

    Attributes:
        counted: number of hits in each zone, including those that are not stored.
        lines: the stored hits as they are shown.
        code: number of lines that are not in tests; they come first.
    """

    def __init__(
        self,
        hits: Iterable[tuple[int, int, bytes, int, bytes]],
        zones: dict[str, int],
        counts: Sequence[int],
        *,
        annotate: bool,
        texts: bool,
    ) -> None:
        self.counted = {zone: counts[number] for zone, number in zones.items() if counts[number]}
        self._names = list(zones)
        self._hot = hottest(self.counted, sum(counts))
        hot = zones[self._hot] if self._hot else -1
        ordered = sorted((rank, zone != hot, path, number, line, zone) for rank, zone, path, number, line in hits)
        self._of = [hit[5] for hit in ordered]
        self.code = bisect_left(ordered, (Rank.TEST_DEFINITION,))
        text = b"\n".join(
            (b"%b:%d: %b" % (path, number, line.strip()) if texts else b"%b:%d" % (path, number)) if number else path
            for _, _, path, number, line, _ in ordered
        )
        self.lines = text.decode("utf-8", "replace").split("\n") if ordered else []
        if annotate:
            self._annotate([hit[0] for hit in ordered], hot)

    def left_out(self, shown: range) -> str:
        """Describe the hits that are left out if these lines are shown."""
        left = dict(self.counted)
        for at in shown:
            left[self._names[self._of[at]]] -= 1
        return remaining(left, self._hot)

    def _annotate(self, ranks: Sequence[int], hot: int) -> None:
        """Mark definitions, and the first use in the hot zone."""
        warm = hot < 0
        for at, rank in enumerate(ranks):
            if rank in (Rank.DEFINITION, Rank.TEST_DEFINITION):
                self.lines[at] += "  # definition"
            elif not warm and self._of[at] == hot:
                self.lines[at] += "  # hot usage"
                warm = True


def _fitting(lines: Sequence[str], most: int, room: int) -> tuple[int, int]:
    """Return the length and the number of the first lines that fit."""
    total = 0
    for count, line in enumerate(lines[: max(most, 0)]):
        length = len(line) + extra(line) + 1
        if total + length > room:
            return total, count
        total += length
    return total, min(len(lines), max(most, 0))
