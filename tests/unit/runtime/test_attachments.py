"""Files that become parts of a message: their types, and those that are refused."""

from __future__ import annotations

from pathlib import Path

import pytest

from toolwire import FilePart, ImagePart, attach
from toolwire.errors import DefinitionError
from toolwire.runtime.attachments import known_suffixes, media_part, media_type_of


def test_a_file_of_exactly_the_maximum_is_attached(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    path.write_bytes(b"1234")
    assert attach(path, max_bytes=4) == FilePart.of_text("1234", name="a.txt")
    with pytest.raises(DefinitionError, match=r"a\.txt has 4 bytes; at most 3 can be attached"):
        attach(path, max_bytes=3)


def test_by_default_20_million_bytes_are_attached(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    path.touch()
    with path.open("r+b") as file:
        file.truncate(20_000_001)
    with pytest.raises(DefinitionError, match=r"20,000,001 bytes; at most 20,000,000 can be attached"):
        attach(path)


def test_an_empty_file_and_one_without_a_suffix_are_refused(tmp_path: Path) -> None:
    (tmp_path / "a.txt").touch()
    with pytest.raises(DefinitionError, match=r"^a\.txt is empty, so there is nothing to attach$"):
        attach(tmp_path / "a.txt")
    (tmp_path / "notes").write_text("x")
    with pytest.raises(DefinitionError, match=r"^notes has no suffix, which shows no media type; pass media_type="):
        attach(tmp_path / "notes")


def test_the_given_media_type_precedes_that_of_the_suffix(tmp_path: Path) -> None:
    (tmp_path / "a.png").write_bytes(b"x")
    assert isinstance(attach(tmp_path / "a.png"), ImagePart)
    assert attach(tmp_path / "a.png", media_type="text/plain") == FilePart.of_text("x", name="a.png")


def test_a_path_is_required() -> None:
    with pytest.raises(TypeError, match="path must be a path"):
        attach(b"a.png")  # type: ignore[arg-type]


def test_suffixes_show_the_registered_media_types() -> None:
    assert known_suffixes() == sorted(known_suffixes())
    assert {media_type_of(name) for name in ("a", "a.unknown", ".png", "png", "a.")} == {""}
    assert media_type_of("a.tar.JPG") == media_type_of("a.jpeg") == "image/jpeg"
    office = "application/vnd.openxmlformats-officedocument"
    types = {
        "image/": "png gif webp bmp",
        "application/": "pdf json xml yaml",
        "audio/": "wav aac flac ogg opus",
        "video/": "mp4 webm mpeg",
        "text/": "csv html markdown",
    }
    texts = "txt text log py js ts toml ini cfg sh c h cpp rs go java rb sql tex"
    expected = dict.fromkeys(texts.split(), "text/plain")
    expected |= {suffix: start + suffix for start, suffixes in types.items() for suffix in suffixes.split()}
    expected |= {"jpg": "image/jpeg", "jpeg": "image/jpeg", "yml": "application/yaml", "doc": "application/msword"}
    expected |= {"xls": "application/vnd.ms-excel", "docx": f"{office}.wordprocessingml.document"}
    expected |= {"xlsx": f"{office}.spreadsheetml.sheet", "pptx": f"{office}.presentationml.presentation"}
    expected |= {"md": "text/markdown", "htm": "text/html", "mp3": "audio/mpeg", "m4a": "audio/mp4", "oga": "audio/ogg"}
    expected |= {"mov": "video/quicktime", "mpg": "video/mpeg", "mkv": "video/x-matroska", "avi": "video/x-msvideo"}
    assert {suffix: media_type_of(f"a.{suffix}") for suffix in known_suffixes()} == expected


def test_parts_are_made_of_data_or_a_url() -> None:
    assert media_part("image/png", "AAAA", name="a.png") == ImagePart("AAAA", "image/png")
    assert media_part("image/png", url="https://x/a") == ImagePart("", "image/png", "https://x/a")
    assert media_part("text/csv", url="https://x/a", name="a") == FilePart("", "text/csv", "https://x/a", "a")
