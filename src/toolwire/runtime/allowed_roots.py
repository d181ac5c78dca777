"""Files below allowed directories, and nowhere else: what is opened is what was looked at.

A path is walked name by name. Each directory is opened relative to the one before it, links are read and walked as
what they say, `..` steps back on the way that was come, and never above the root. So nobody who swaps a directory for
a link while this runs can lead it outside: there is no moment between looking and opening.

What no walk can tell: a hard link is the file itself, and a file system that is mounted below a root belongs to it.
Both are let in unless a program says otherwise. Only POSIX systems can open a name inside an open directory; on others
no root is accepted.
"""

from __future__ import annotations

import errno
import functools
import os
import stat
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from itertools import islice
from pathlib import Path
from typing import Any

from toolwire.errors import ToolError

MAX_PATH = 4_096
MAX_LINKS = 40
MAX_DEPTH = 100
"""Directories below directories that `AllowedRoots.files` goes down."""
MAX_ENTRIES = 100_000
"""Names in one directory that are looked at."""

_FLAGS = getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_CLOEXEC", 0)
_DIRECTORY = os.O_RDONLY | getattr(os, "O_DIRECTORY", 0) | _FLAGS
_FILE = getattr(os, "O_NONBLOCK", 0) | _FLAGS
_SEARCH = getattr(os, "O_PATH", 0)
_POSIX = os.open in os.supports_dir_fd and os.scandir in os.supports_fd and hasattr(os, "O_NOFOLLOW")
_NOT_A_LINK = (errno.EINVAL, errno.ENOENT)
_MAYBE_A_LINK = (errno.ELOOP, errno.ENOTDIR, errno.EMLINK)


class AllowedRoots:
    """Directories below which files may be touched; none of them means no file at all.

    Paths are relative to the first root; absolute ones are taken inside any root. Devices, pipes and sockets are never
    opened.

    Args:
        roots: directories; each is looked up once, now.
        hard_links: whether files are read that have several names, of which one may lie outside. They are never
            written through: a file that is written gets a content of its own.
        mounts: whether directories of other file systems than their root's are entered.

    Raises:
        ToolError: a root is not a directory, or this system cannot guard one. (Every method raises it for what it
            refuses or cannot do; the message is for the model, and says nothing about what lies outside.)
    """

    def __init__(self, *roots: str | os.PathLike[str], hard_links: bool = True, mounts: bool = True) -> None:
        if roots and not _POSIX:
            raise ToolError("files cannot be guarded on this system, which opens no file inside an open directory")
        self.roots: tuple[Path, ...] = tuple(Path(os.path.realpath(Path(root).expanduser())) for root in roots)
        self.hard_links = hard_links
        self.mounts = mounts
        self._spelled: list[tuple[tuple[str, ...], Path]] = []
        for root, given in zip(self.roots, roots, strict=True):
            if not root.is_dir():
                raise ToolError(f"not a directory: {os.fspath(given)}")
            written = Path(os.path.abspath(Path(given).expanduser()))
            self._spelled += [(root.parts[1:], root), (written.parts[1:], root)]
        self._spelled.sort(key=lambda one: len(one[0]))

    @contextmanager
    def directory(self, path: str = ".") -> Iterator[int]:
        """A file descriptor of a directory; closed at the end."""
        with self._walked(path) as walk:
            if not walk.name:
                yield walk.top
                return
            os.stat(walk.name, dir_fd=walk.top, follow_symlinks=False)  # says that it is not there
            raise ToolError(f"{path} is not a directory; read_file reads files")

    @contextmanager
    def reading(self, path: str) -> Iterator[int]:
        """A file descriptor to read a regular file from; closed at the end."""
        with self._walked(path) as walk:
            if not walk.name:
                raise ToolError(f"{path} is a directory; list_dir lists directories")
            file = self._opened(walk.top, walk.name, path)
            try:
                yield file
            finally:
                os.close(file)

    def read(self, path: str, *, most: int) -> bytes:
        """At most so many bytes of a file."""
        with self.reading(path) as descriptor:
            return _content(descriptor, most)

    def write(self, path: str, data: bytes, *, parents: bool = False) -> None:
        """Write a file whole, or leave what was there: it is written beside it and put in its place.

        A link is followed like everywhere else, so the file that it leads to is the one that is replaced.

        Args:
            path: the file.
            data: its new content.
            parents: make the directories that are missing.
        """
        with self._walked(path, make=parents) as walk:
            self._put(walk, data, path)

    def update(self, path: str, change: Callable[[bytes | None], bytes], *, most: int, parents: bool = False) -> None:
        """Write what a function makes of a file's content, in the very directory that it was read from.

        Args:
            path: the file.
            change: gets what is there, None where nothing is; whatever it raises leaves the file as it is.
            most: bytes that the file may have.
            parents: make the directories that are missing.
        """
        with self._walked(path, make=parents) as walk:
            self._put(walk, change(self._there(walk, path, most)), path)

    def look(self, path: str, *, most: int) -> bytes | None:
        """What is in a file; None where there is none, even if its directories are missing."""
        with self._walked(path, missing=True) as walk:
            return None if walk.missing else self._there(walk, path, most)

    def files(
        self,
        path: str,
        skipped: Callable[[str], bool],
        left_out: Callable[[str], None],
        *,
        depth: int = MAX_DEPTH,
        entries: int = MAX_ENTRIES,
    ) -> Iterator[tuple[str, int]]:
        """The regular files at or below a path, opened: each one's name below it ("" if it is the path), a descriptor.

        Links are not followed. In order of name, a directory's files before those of the directories in it. What is
        no file, or cannot be opened, is passed over. A descriptor is closed when the next one is asked for.

        Args:
            path: a directory or a file.
            skipped: names, of files and directories, that are passed over.
            left_out: receives the reason if something exceeds a limit.
            depth: maximum number of directories inside one another.
            entries: maximum number of names in one directory.
        """
        with self._walked(path) as walk:
            if walk.name:
                file = self._opened(walk.top, walk.name, path)
                try:
                    yield "", file
                finally:
                    os.close(file)
            else:
                yield from self._below(os.dup(walk.top), "", (depth, entries), skipped, left_out)

    def names(self, path: str, skipped: Callable[[str], bool], *, deep: bool, most: int) -> Iterator[tuple[str, bool]]:
        """The names of what is in a directory, and whether each is a directory; no file is opened.

        Links are left out. In order of name, but what is in directories comes behind what is beside them.

        Args:
            path: the directory.
            skipped: names that are passed over; "" is told in their place.
            deep: with what is below its directories.
            most: names after which it ends.
        """
        with self.directory(path) as directory:
            yield from islice(self._names(os.dup(directory), "", 0 if deep else MAX_DEPTH, skipped, most), most)

    def _names(
        self, directory: int, prefix: str, depth: int, skipped: Callable[[str], bool], most: int
    ) -> Iterator[tuple[str, bool]]:
        below = []
        try:
            with os.scandir(directory) as entries:
                found = sorted(islice(entries, most), key=lambda one: one.name)
            for entry in found:
                is_directory = entry.is_dir(follow_symlinks=False)
                known = not skipped(entry.name) and (is_directory or entry.is_file(follow_symlinks=False))
                yield prefix + entry.name if known else "", is_directory
                if known and is_directory and depth < MAX_DEPTH:
                    below.append(entry.name)
            for name in below:
                with suppress(OSError):
                    inner = os.open(name, _DIRECTORY, dir_fd=directory)
                    if not self.mounts and os.fstat(inner).st_dev != os.fstat(directory).st_dev:
                        os.close(inner)
                        continue
                    yield from self._names(inner, f"{prefix}{name}/", depth + 1, skipped, most)
        finally:
            os.close(directory)

    def _below(
        self,
        directory: int,
        prefix: str,
        limits: tuple[int, int],
        skipped: Callable[[str], bool],
        left_out: Callable[[str], None],
    ) -> Iterator[tuple[str, int]]:
        below = []
        depth, most = limits
        try:
            entries, more = entries_of(directory, most)
            if more:
                left_out(f"only {most} names of {prefix or 'the directory'} were looked at")
            for entry in entries:
                if skipped(entry.name):
                    continue
                if entry.is_dir(follow_symlinks=False):
                    below.append(entry.name)
                elif entry.is_file(follow_symlinks=False):
                    with suppress(ToolError):
                        file = self._opened(directory, entry.name, entry.name)
                        try:
                            yield prefix + entry.name, file
                        finally:
                            os.close(file)
            if below and prefix.count("/") == depth:
                left_out(f"nothing deeper than {depth} directories was looked at")
                return
            for name in below:
                with suppress(OSError):
                    inner = os.open(name, _DIRECTORY, dir_fd=directory)
                    if not self.mounts and os.fstat(inner).st_dev != os.fstat(directory).st_dev:
                        os.close(inner)
                        continue
                    yield from self._below(inner, f"{prefix}{name}/", limits, skipped, left_out)
        finally:
            os.close(directory)

    # -- one name in an open directory ---------------------------------------------------------------------------

    def _opened(self, parent: int, name: str, path: str) -> int:
        """A regular file, to read. Looked at first, because opening alone can do something to a device."""
        try:
            if not stat.S_ISREG(os.stat(name, dir_fd=parent, follow_symlinks=False).st_mode):
                raise ToolError(f"{path} is not a regular file")
            file = os.open(name, os.O_RDONLY | _FILE, dir_fd=parent)
        except OSError as error:
            raise ToolError(f"{path}: {_reason(error)}") from error
        info = os.fstat(file)
        if not stat.S_ISREG(info.st_mode):
            os.close(file)
            raise ToolError(f"{path} is not a regular file")
        if info.st_nlink > 1 and not self.hard_links:
            os.close(file)
            raise ToolError(f"{path} has {info.st_nlink} names, of which others may lie outside; it is not read")
        return file

    def _there(self, walk: _Walk, path: str, most: int) -> bytes | None:
        if not walk.name:
            raise ToolError(f"{path} is a directory")
        try:
            os.stat(walk.name, dir_fd=walk.top, follow_symlinks=False)
        except FileNotFoundError:
            return None
        file = self._opened(walk.top, walk.name, path)
        try:
            if (size := os.fstat(file).st_size) > most:
                raise ToolError(f"{path} has {size} bytes; at most {most} can be worked on")
            return _content(file, most)
        finally:
            os.close(file)

    def _put(self, walk: _Walk, data: bytes, path: str) -> None:
        parent, name = walk.top, walk.name
        if not name:
            raise ToolError(f"{path} is a directory")
        there = _replaced(parent, name, path)
        beside = f".{name[:50]}.{os.urandom(6).hex()}"
        try:
            file = os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_EXCL | _FILE, 0o666, dir_fd=parent)
            try:
                with os.fdopen(file, "wb") as opened:
                    opened.write(data)
                    opened.flush()
                    if there is not None:
                        with suppress(PermissionError):  # only root may give files away
                            os.fchown(file, there.st_uid, there.st_gid)
                        os.fchmod(file, there.st_mode & 0o777)
                    os.fsync(file)
                os.replace(beside, name, src_dir_fd=parent, dst_dir_fd=parent)
            except OSError:
                with suppress(OSError):
                    os.unlink(beside, dir_fd=parent)
                raise
        except OSError as error:
            raise ToolError(f"{path}: {_reason(error)}") from error

    # -- the walk ------------------------------------------------------------------------------------------------

    @contextmanager
    def _walked(self, path: str, *, make: bool = False, missing: bool = False) -> Iterator[_Walk]:
        """The directory that holds what a path names, opened, and its name there; "" if it is that directory."""
        root, names = self._begun(path)
        try:
            walk = _Walk(self, root, path, make=make, missing=missing)
            try:
                walk.go(names)
                yield walk
            except (OSError, ToolError):
                walk.unmake()
                raise
            finally:
                walk.close()
        except OSError as error:
            raise ToolError(f"{path}: {_reason(error)}") from error

    def _begun(self, path: str) -> tuple[Path, list[str]]:
        if not self.roots:
            raise ToolError("no directory is allowed: there is no file access")
        if not path or "\0" in path or len(path) > MAX_PATH:
            raise ToolError("not a path: it is empty, too long, or has a null character")
        try:
            os.fsencode(path)
        except UnicodeEncodeError:
            raise ToolError("not a path: it has half of a surrogate pair") from None
        return self.inside(path) if path.startswith("/") else (self.roots[0], path.split("/"))

    def inside(self, path: str) -> tuple[Path, list[str]]:
        """The root that an absolute path begins with, name by name, and the names behind it."""
        names = [name for name in path.split("/") if name not in ("", ".")]
        for own, root in self._spelled:
            if tuple(names[: len(own)]) == own:
                return root, names[len(own) :]
        raise ToolError(f"{path} is outside the allowed directory; use a path relative to it, such as .")


class _Walk:
    """The directories on the way, each opened inside the one before.

    Attributes:
        name: what the path names in the last of them; "" for that directory itself.
        missing: a directory on the way is not there, which is only allowed where this was asked for.
    """

    def __init__(self, roots: AllowedRoots, root: Path, path: str, *, make: bool, missing: bool) -> None:
        self._roots = roots
        self._path = path
        self._make = make
        self._may_miss = missing
        self._links = 0
        self._made: list[str] = []
        self._stack = [_root(root)]
        self._device = os.fstat(self._stack[0]).st_dev
        self.name = ""
        self.missing = False

    @property
    def top(self) -> int:
        """The directory that was reached."""
        return self._stack[-1]

    def go(self, names: list[str]) -> None:
        """Walk along names."""
        todo = [name for name in reversed(names) if name not in ("", ".")]
        while todo:
            name = todo.pop()
            if name == "..":
                self._back()
                continue
            try:
                self._enter(name)
                continue
            except OSError as error:
                if error.errno == errno.ENOENT:
                    if not todo:  # to be made, or to be said that it is not there
                        self.name = name
                    elif self._make and ".." not in todo:
                        self._make_one(name)
                        continue
                    elif self._may_miss and ".." not in todo:
                        self.missing = True
                    else:
                        raise
                    return
                if error.errno not in _MAYBE_A_LINK:
                    raise
                target = self._target(name)
            if target is None:
                if todo:
                    raise ToolError(f"{self._path}: {name} is not a directory")
                self.name = name
                return
            todo += self._steps(target)

    def _enter(self, name: str) -> None:
        inner = os.open(name, _DIRECTORY, dir_fd=self.top)
        self._stack.append(inner)
        if not self._roots.mounts and os.fstat(inner).st_dev != self._device:
            raise ToolError(f"{self._path}: {name} is on another file system, which is not entered")

    def _make_one(self, name: str) -> None:
        try:
            os.mkdir(name, dir_fd=self.top)
        except FileExistsError:  # somebody else was faster
            self._enter(name)
            return
        self._enter(name)
        self._made.append(name)

    def _back(self) -> None:
        if len(self._stack) == 1:
            raise ToolError(f"{self._path} is outside the allowed directory")
        os.close(self._stack.pop())

    def _target(self, name: str) -> str | None:
        """Where a link leads; None if it is none."""
        try:
            return os.readlink(name, dir_fd=self.top)
        except OSError as error:
            if error.errno in _NOT_A_LINK:
                return None
            raise

    def _steps(self, target: str) -> list[str]:
        """The names of a link's target, the first last; an absolute one begins at a root again."""
        self._links += 1
        if self._links > MAX_LINKS:
            raise ToolError(f"{self._path}: too many links")
        names = target.split("/")
        if target.startswith("/"):
            try:
                root, names = self._roots.inside(target)
            except ToolError:
                raise ToolError(f"{self._path} leads outside the allowed directory") from None
            self.close()
            self._stack = [_root(root)]
            self._device = os.fstat(self._stack[0]).st_dev
        return [name for name in reversed(names) if name not in ("", ".")]

    def unmake(self) -> None:
        """Take the directories away again that were made; they are the last on the way, and empty."""
        while self._made and len(self._stack) > 1:
            os.close(self._stack.pop())
            with suppress(OSError):
                os.rmdir(self._made.pop(), dir_fd=self.top)

    def close(self) -> None:
        """Close all of them."""
        while self._stack:
            os.close(self._stack.pop())


def entries_of(directory: int, most: int = MAX_ENTRIES) -> tuple[list[os.DirEntry[str]], bool]:
    """What is in an open directory, sorted by name, and whether there was too much to look at all."""
    found: list[os.DirEntry[str]] = []
    with os.scandir(directory) as entries:
        for entry in entries:
            if len(found) == most:
                return sorted(found, key=lambda one: one.name), True
            found.append(entry)
    return sorted(found, key=lambda one: one.name), False


def beginning_in(directory: int) -> dict[str, Any]:
    """What `subprocess` has to be told for a program to begin in an open directory, whatever its name leads to now."""
    if os.path.isdir("/proc/self/fd"):
        return {"cwd": f"/proc/self/fd/{directory}"}  # the child enters it before its descriptors are closed
    return {"preexec_fn": functools.partial(os.fchdir, directory)}


def _root(root: Path) -> int:
    """A root, opened by a way on which there was no link when it was looked up, and must be none now."""
    if not _SEARCH:
        return os.open(root, _DIRECTORY)
    at = os.open("/", _SEARCH)
    try:
        for name in root.parts[1:-1]:
            inner = os.open(name, _SEARCH | _DIRECTORY, dir_fd=at)
            os.close(at)
            at = inner
        return os.open(root.parts[-1], _DIRECTORY, dir_fd=at)
    finally:
        os.close(at)


def _replaced(parent: int, name: str, path: str) -> os.stat_result | None:
    """The file that is replaced; what is no file is not."""
    try:
        there = os.stat(name, dir_fd=parent, follow_symlinks=False)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise ToolError(f"{path}: {_reason(error)}") from error
    if not stat.S_ISREG(there.st_mode):
        raise ToolError(f"{path} is not a regular file")
    return there


def _content(descriptor: int, most: int) -> bytes:
    with os.fdopen(os.dup(descriptor), "rb") as file:
        return file.read(most)


def _reason(error: OSError) -> str:
    return error.strerror or type(error).__name__
