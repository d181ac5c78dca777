"""Files below allowed directories, and nowhere else: what is opened is what was looked at.

A path is walked name by name. Each directory is opened relative to the one before it, links are read and walked as
what they say, `..` steps back on the way that was come, and never above the root. So nobody who swaps a directory for
a link while this runs can lead it outside: there is no moment between looking and opening. POSIX systems only.
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from toolwire.errors import ToolError

MAX_PATH = 4_096
MAX_LINKS = 40

_DIRECTORY = os.O_RDONLY | getattr(os, "O_DIRECTORY", 0) | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_CLOEXEC", 0)
_FILE = getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_CLOEXEC", 0)
_NOT_A_LINK = (errno.EINVAL, errno.ENOENT)
_MAYBE_A_LINK = (errno.ELOOP, errno.ENOTDIR, errno.EMLINK)


class AllowedRoots:
    """Directories below which files may be touched; none of them means no file at all.

    Paths are relative to the first root; absolute ones are taken inside any root.

    Raises:
        ToolError: a root is not a directory. (Every method raises it for what it refuses or cannot do; the message is
            for the model, and says nothing about what lies outside.)
    """

    def __init__(self, *roots: str | os.PathLike[str]) -> None:
        self.roots: tuple[Path, ...] = tuple(Path(os.path.realpath(Path(root).expanduser())) for root in roots)
        for root, given in zip(self.roots, roots, strict=True):
            if not root.is_dir():
                raise ToolError(f"not a directory: {os.fspath(given)}")

    @contextmanager
    def directory(self, path: str = ".") -> Iterator[int]:
        """A file descriptor of a directory; closed at the end."""
        with self._walked(path) as (parent, name):
            if not name:
                yield parent
                return
            raise ToolError(f"{path} is not a directory")

    @contextmanager
    def reading(self, path: str) -> Iterator[int]:
        """A file descriptor to read a regular file from; closed at the end."""
        with self._walked(path) as (parent, name):
            if not name:
                raise ToolError(f"{path} is a directory")
            try:
                file = os.open(name, os.O_RDONLY | _FILE, dir_fd=parent)
            except OSError as error:
                raise ToolError(f"{path}: {_reason(error)}") from error
            try:
                if not stat.S_ISREG(os.fstat(file).st_mode):
                    raise ToolError(f"{path} is no regular file")
                yield file
            finally:
                os.close(file)

    def read(self, path: str, *, most: int) -> bytes:
        """At most so many bytes of a file."""
        with self.reading(path) as descriptor, os.fdopen(os.dup(descriptor), "rb") as file:
            return file.read(most)

    def write(self, path: str, data: bytes) -> None:
        """Write a file whole, or leave what was there: it is written beside it and put in its place.

        Its directory has to be there. A link in the file's place is replaced, not followed.
        """
        with self._walked(path, follow_last=False) as (parent, name):
            if not name:
                raise ToolError(f"{path} is a directory")
            mode = self._mode(parent, name, path)
            beside = f".{name[:100]}.{os.urandom(6).hex()}"
            try:
                file = os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_EXCL | _FILE, mode, dir_fd=parent)
            except OSError as error:
                raise ToolError(f"{path}: {_reason(error)}") from error
            try:
                with os.fdopen(file, "wb") as opened:
                    opened.write(data)
                    opened.flush()
                    os.fsync(opened.fileno())
                os.replace(beside, name, src_dir_fd=parent, dst_dir_fd=parent)
            except OSError as error:
                with suppress(OSError):
                    os.unlink(beside, dir_fd=parent)
                raise ToolError(f"{path}: {_reason(error)}") from error

    @staticmethod
    def _mode(parent: int, name: str, path: str) -> int:
        """The rights of what is replaced; what is no file is not."""
        try:
            there = os.lstat(name, dir_fd=parent)
        except FileNotFoundError:
            return 0o644
        except OSError as error:
            raise ToolError(f"{path}: {_reason(error)}") from error
        if stat.S_ISLNK(there.st_mode):
            return 0o644
        if not stat.S_ISREG(there.st_mode):
            raise ToolError(f"{path} is no regular file")
        return stat.S_IMODE(there.st_mode)

    # -- the walk ------------------------------------------------------------------------------------------------

    @contextmanager
    def _walked(self, path: str, *, follow_last: bool = True) -> Iterator[tuple[int, str]]:
        """The directory that holds what a path names, opened, and its name there; "" if it is that directory."""
        root, names = self._begun(path)
        walk = _Walk(self, root, path)
        try:
            yield walk.go(names, follow_last=follow_last), walk.name
        except OSError as error:
            raise ToolError(f"{path}: {_reason(error)}") from error
        finally:
            walk.close()

    def _begun(self, path: str) -> tuple[Path, list[str]]:
        if not self.roots:
            raise ToolError("no directory is allowed: there is no file access")
        if not path or "\0" in path or len(path) > MAX_PATH:
            raise ToolError("not a path: it is empty, too long, or has a null character")
        return self.inside(path) if path.startswith("/") else (self.roots[0], path.split("/"))

    def inside(self, path: str) -> tuple[Path, list[str]]:
        """The root that an absolute path begins with, name by name, and the names behind it."""
        names = [name for name in path.split("/") if name not in ("", ".")]
        for root in self.roots:
            own = root.parts[1:]
            if tuple(names[: len(own)]) == own:
                return root, names[len(own) :]
        raise ToolError(f"{path} is outside the allowed directory; use a path relative to it, such as .")


class _Walk:
    """The directories on the way, each opened inside the one before."""

    def __init__(self, roots: AllowedRoots, root: Path, path: str) -> None:
        self._roots = roots
        self._path = path
        self._links = 0
        self._stack = [os.open(root, _DIRECTORY)]
        self.name = ""

    def go(self, names: list[str], *, follow_last: bool) -> int:
        todo = [name for name in reversed(names) if name not in ("", ".")]
        while todo:
            name = todo.pop()
            if name == "..":
                if len(self._stack) == 1:
                    raise ToolError(f"{self._path} is outside the allowed directory")
                os.close(self._stack.pop())
                continue
            if name in ("", "."):
                continue
            if not todo and not follow_last and not self._is_directory(name):
                self.name = name
                break
            try:
                self._stack.append(os.open(name, _DIRECTORY, dir_fd=self._stack[-1]))
            except OSError as error:
                if error.errno not in _MAYBE_A_LINK:
                    if error.errno == errno.ENOENT and not todo:
                        self.name = name  # to be made, or to be said that it is not there
                        break
                    raise
                target = self._target(name)
                if target is None:
                    if todo:
                        raise ToolError(f"{self._path}: {name} is not a directory") from error
                    self.name = name
                    break
                todo += self._steps(target)
        return self._stack[-1]

    def _is_directory(self, name: str) -> bool:
        try:
            return stat.S_ISDIR(os.lstat(name, dir_fd=self._stack[-1]).st_mode)
        except FileNotFoundError:
            return False

    def _target(self, name: str) -> str | None:
        """Where a link leads; None if it is none."""
        try:
            return os.readlink(name, dir_fd=self._stack[-1])
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
            self._stack = [os.open(root, _DIRECTORY)]
        return [name for name in reversed(names) if name not in ("", ".")]

    def close(self) -> None:
        while self._stack:
            os.close(self._stack.pop())


def _reason(error: OSError) -> str:
    return error.strerror or type(error).__name__
