"""Files below allowed directories, and nowhere else: the file that is opened is the file that was checked.

A path is walked name by name. Each directory is opened relative to the one before it, links are read and their targets
walked, and `..` returns to the directory before, never above the root. So nobody who swaps a directory for a link
meanwhile can lead the walk outside: there is no moment between the check and the opening.

Two cases cannot be recognized: a hard link is the file itself, and a file system that is mounted below a root belongs
to it. Both are allowed unless a program says otherwise. Only POSIX systems can open a name inside an open directory; on
others no root is accepted.
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from itertools import islice
from pathlib import Path

from toolwire._surface import check_items
from toolwire.errors import ToolError
from toolwire.runtime.directory_descriptors import MAX_ENTRIES, entries_of, real_path

MAX_PATH = 4_096
MAX_LINKS = 40
MAX_DEPTH = 100
"""Maximum number of directories inside one another in `AllowedRoots.files`."""

_FLAGS = getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_CLOEXEC", 0)
_DIRECTORY = os.O_RDONLY | getattr(os, "O_DIRECTORY", 0) | _FLAGS
_FILE = getattr(os, "O_NONBLOCK", 0) | _FLAGS
_SEARCH = getattr(os, "O_PATH", 0)
_POSIX = os.open in os.supports_dir_fd and os.scandir in os.supports_fd and hasattr(os, "O_NOFOLLOW")
# What opening a link fails with under O_NOFOLLOW, on different systems and with or without O_DIRECTORY.
_MAYBE_A_LINK = (errno.ELOOP, errno.ENOTDIR, errno.EMLINK)
_NOT_A_LINK = (errno.EINVAL, errno.ENOENT)


class AllowedRoots:
    """Directories below which files may be used; without one there is no file access.

    Paths are relative to the first root; absolute ones may be inside any root. Devices, pipes and sockets are never
    opened.

    Args:
        roots: directories; each is resolved once, now.
        hard_links: read files with several names, of which one may be outside. A write never changes the others: it
            replaces the file.
        mounts: enter directories of other file systems than their root's.

    Raises:
        ToolError: a root is not a directory, or this system is not supported. (Every method raises it for a path that
            it refuses; the message is for the model, and says nothing about what is outside.)
    """

    def __init__(self, *roots: str | os.PathLike[str], hard_links: bool = True, mounts: bool = True) -> None:
        check_items("roots", roots, (str, os.PathLike), "paths of directories")
        if roots and not _POSIX:
            raise ToolError("files cannot be guarded on this system, which cannot open a file inside an open directory")
        self.roots: tuple[Path, ...] = tuple(Path(os.path.realpath(Path(root).expanduser())) for root in roots)
        self.hard_links = hard_links
        self.mounts = mounts
        self._spelled: list[tuple[tuple[str, ...], Path]] = []
        for root, original in zip(self.roots, roots, strict=True):
            if not root.is_dir():
                reason = "is not a directory" if root.exists() else "does not exist"
                raise ToolError(f"the root {os.fspath(original)} {reason}")
            written = Path(os.path.abspath(Path(original).expanduser()))
            self._spelled += [(root.parts[1:], root), (written.parts[1:], root)]
        self._spelled.sort(key=lambda spelling: len(spelling[0]))

    @contextmanager
    def directory(self, path: str = ".") -> Iterator[int]:
        """Yield a descriptor of a directory, which is closed at the end."""
        with self._walked(path) as walk:
            if not walk.name:
                yield walk.top
                return
            os.stat(walk.name, dir_fd=walk.top, follow_symlinks=False)  # says that it is not there
            raise ToolError(f"{path} is not a directory; read_file reads files")

    @contextmanager
    def reading(self, path: str) -> Iterator[int]:
        """Yield a descriptor of a regular file, which is closed at the end."""
        with self._walked(path) as walk:
            if not walk.name:
                raise ToolError(f"{path} is a directory; list_dir lists directories")
            file = self._opened(walk.top, walk.name, path)
            try:
                yield file
            finally:
                os.close(file)

    def read(self, path: str, *, most: int) -> bytes:
        """Return the beginning of a file, at most `most` bytes."""
        with self.reading(path) as descriptor:
            return _content(descriptor, most)

    def write(self, path: str, data: bytes, *, parents: bool = False) -> None:
        """Write a file whole or not at all: it is written under another name, and then renamed.

        Links are followed, so the file that a link leads to is replaced.

        Args:
            path: the file.
            data: its new content.
            parents: create missing directories.
        """
        with self._walked(path, make=parents) as walk:
            self._put(walk, data, path)

    def update(
        self,
        path: str,
        change: Callable[[bytes | None], bytes],
        *,
        most: int,
        parents: bool = False,
        on_target: Callable[[str], None] = lambda _: None,
    ) -> None:
        """Replace a file's content, in the very directory that it was read from.

        Args:
            path: the file.
            change: returns the new content for the old one (None: there is no file). If it raises, nothing changes.
            most: maximum size of the file, in bytes.
            parents: create missing directories.
            on_target: receives the file's path without links, first; if it raises, nothing changes.
        """
        with self._walked(path, make=parents) as walk:
            on_target(walk.target)
            self._put(walk, change(self._there(walk, path, most)), path)

    def look(self, path: str, *, most: int, on_target: Callable[[str], None] = lambda _: None) -> bytes | None:
        """Return the content of a file; None if it or its directory does not exist. See `update` for `on_target`."""
        with self._walked(path, missing=True) as walk:
            on_target(walk.target)
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
        """Yield the regular files at or below a path: the name below it ("" for the path itself), and a descriptor.

        Links are not followed. The order is that of the names, a directory's files before its directories. Whatever is
        not a regular file or cannot be opened is left out. A descriptor is closed when the next one is requested.

        Args:
            path: a directory or a file.
            skipped: whether a name of a file or a directory is left out.
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
                for name, is_directory, parent in self._below(
                    os.dup(walk.top), "", (depth, entries), skipped, left_out
                ):
                    if name and not is_directory:
                        with suppress(ToolError):
                            file = self._opened(parent, os.path.basename(name), name)
                            try:
                                yield name, file
                            finally:
                                os.close(file)

    def names(self, path: str, skipped: Callable[[str], bool], *, deep: bool, most: int) -> Iterator[tuple[str, bool]]:
        """Yield the names in a directory, and whether each is a directory; no file is opened.

        Links are left out. The order is that of the names, a directory's own before those in its directories.

        Args:
            path: the directory.
            skipped: whether a name is left out; "" is yielded in its place.
            deep: include everything below.
            most: maximum number of names.
        """
        with self.directory(path) as directory:
            limits = (MAX_DEPTH if deep else 0, most)
            for name, is_directory, _ in islice(
                self._below(os.dup(directory), "", limits, skipped, lambda _: None), most
            ):
                yield name, is_directory

    def _below(
        self,
        directory: int,
        prefix: str,
        limits: tuple[int, int],
        skipped: Callable[[str], bool],
        left_out: Callable[[str], None],
    ) -> Iterator[tuple[str, bool, int]]:
        """Yield each name below a directory ("" if skipped), whether it is a directory, and what it was found in."""
        below = []
        depth, most = limits
        try:
            entries, more = entries_of(directory, most)
            if more:
                left_out(f"only {most} names of {prefix or 'the directory'} were looked at")
            for entry in entries:
                is_directory = entry.is_dir(follow_symlinks=False)
                if skipped(entry.name) or not (is_directory or entry.is_file(follow_symlinks=False)):
                    yield "", is_directory, directory
                    continue
                yield prefix + entry.name, is_directory, directory
                if is_directory:
                    below.append(entry.name)
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
        """Open a regular file to read. It is checked first, because opening a device can have effects."""
        try:
            if not stat.S_ISREG(os.stat(name, dir_fd=parent, follow_symlinks=False).st_mode):
                raise ToolError(f"{path} is not a regular file")
            file = os.open(name, os.O_RDONLY | _FILE, dir_fd=parent)
        except OSError as error:
            raise ToolError(f"{path}: {_reason(error)}") from error
        info = os.fstat(file)
        if not stat.S_ISREG(info.st_mode):  # it was replaced since the check
            os.close(file)
            raise ToolError(f"{path} is not a regular file")
        if info.st_nlink > 1 and not self.hard_links:
            os.close(file)
            raise ToolError(f"{path} has {info.st_nlink} names, of which others may be outside; it is not read")
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
                raise ToolError(f"{path} has {size} bytes; the maximum is {most}")
            return _content(file, most)
        finally:
            os.close(file)

    def _put(self, walk: _Walk, data: bytes, path: str) -> None:
        parent, name = walk.top, walk.name
        if not name:
            raise ToolError(f"{path} is a directory")
        replaced = _replaced(parent, name, path)
        beside = f".{name[:50]}.{os.urandom(6).hex()}"
        try:
            # Nobody may read the new text before the owner and the permissions of the old file are set.
            mode = 0o666 if replaced is None else 0o600
            file = os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_EXCL | _FILE, mode, dir_fd=parent)
            try:
                with os.fdopen(file, "wb") as opened:
                    opened.write(data)
                    opened.flush()
                    if replaced is not None:
                        with suppress(PermissionError):  # only root may give files away
                            os.fchown(file, replaced.st_uid, replaced.st_gid)
                        os.fchmod(file, replaced.st_mode & 0o777)
                    os.fsync(file)  # before the name leads to it, so that a crash leaves the old file or the new one
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
        """Yield a walk to the directory that contains what a path names."""
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
        """Return the root of an absolute path, and the names below it."""
        names = [name for name in path.split("/") if name not in ("", ".")]
        for spelling, root in self._spelled:
            if tuple(names[: len(spelling)]) == spelling:
                return root, names[len(spelling) :]
        raise ToolError(f"{path} is outside the allowed directory; use a path relative to it, such as .")


class _Walk:
    """The directories on the way, each opened inside the one before.

    Attributes:
        name: what the path names in the last directory; "" for that directory itself.
        missing: a directory on the way does not exist, and the caller allows that.
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
        """The last directory."""
        return self._stack[-1]

    @property
    def target(self) -> str:
        """The path without links."""
        return os.path.join(real_path(self.top), self.name).removesuffix("/")

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
                        self.name = "/".join([name, *reversed(todo)])
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
        except FileExistsError:  # another program was faster
            self._enter(name)
            return
        self._enter(name)
        self._made.append(name)

    def _back(self) -> None:
        if len(self._stack) == 1:
            raise ToolError(f"{self._path} is outside the allowed directory")
        os.close(self._stack.pop())

    def _target(self, name: str) -> str | None:
        """Return a link's target; None if it is not a link."""
        try:
            return os.readlink(name, dir_fd=self.top)
        except OSError as error:
            if error.errno in _NOT_A_LINK:
                return None
            raise

    def _steps(self, target: str) -> list[str]:
        """Return the names of a link's target in reverse; an absolute one starts at a root again."""
        self._links += 1
        if self._links > MAX_LINKS:
            raise ToolError(f"{self._path}: too many links")
        names = target.split("/")
        if target.startswith("/"):
            try:
                root, names = self._roots.inside(target)
            except ToolError:
                raise ToolError(f"{self._path} leads outside the allowed directory") from None
            self.close()  # directories on the way to an absolute link are not on the way from its root
            self._stack = [_root(root)]
            self._device = os.fstat(self._stack[0]).st_dev
        return [name for name in reversed(names) if name not in ("", ".")]

    def unmake(self) -> None:
        """Remove the directories that were created; they are the last on the way, and empty."""
        while self._made and len(self._stack) > 1:
            os.close(self._stack.pop())
            with suppress(OSError):
                os.rmdir(self._made.pop(), dir_fd=self.top)

    def close(self) -> None:
        """Close all directories."""
        while self._stack:
            os.close(self._stack.pop())


def _root(root: Path) -> int:
    """Open a root by its resolved path, on which there must still be no link."""
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
    """Return the status of the file to replace, None if there is none; raise an error unless it is a regular file."""
    try:
        info = os.stat(name, dir_fd=parent, follow_symlinks=False)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise ToolError(f"{path}: {_reason(error)}") from error
    if not stat.S_ISREG(info.st_mode):
        raise ToolError(f"{path} is not a regular file")
    return info


def _content(descriptor: int, most: int) -> bytes:
    with os.fdopen(os.dup(descriptor), "rb") as file:
        return file.read(most)


def _reason(error: OSError) -> str:
    return error.strerror or type(error).__name__
