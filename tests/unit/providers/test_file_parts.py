"""Files and images in places that have none for them: in words, with a note, or split off."""

from typing import Any

import pytest

from toolwire import FilePart, ImagePart, Notes, TextPart, ToolResult
from toolwire.providers.file_parts import (
    AUDIO_FORMATS,
    file_name,
    files_of,
    images_of,
    in_words,
    is_uploaded,
    media_follow,
)

PDF = FilePart("JVBERi0=", media_type="application/pdf", name="a.pdf")
LETTER = FilePart("RGVhciBBZGE=", media_type="text/plain", name="letter.txt")
PICTURE = ImagePart("iVBORw==", media_type="image/png")


@pytest.mark.parametrize(
    ("part", "reason", "text", "note"),
    [
        (
            LETTER,
            "",
            "Document letter.txt:\nDear Ada",
            "changed document letter.txt: x takes no document here: its text is part of the message",
        ),
        (
            FilePart(url="https://a.example/b", media_type="application/pdf"),
            "",
            "Document: https://a.example/b",
            "changed document: x takes no document here: its address becomes text",
        ),
        (
            PDF,
            "it is too long",
            "Document a.pdf (application/pdf): it cannot be shown here.",
            "dropped document a.pdf: it is too long (application/pdf)",
        ),
        (
            PICTURE,
            "",
            "Image (image/png): it cannot be shown here.",
            "dropped image: x takes no image here (image/png)",
        ),
        (
            ImagePart(url="https://a.example/c.png"),
            "no addresses",
            "Image: https://a.example/c.png",
            "changed image: no addresses: its address becomes text",
        ),
    ],
    ids=["text", "address", "reason", "image", "address of an image"],
)
def test_a_part_in_words_says_what_it_was(part: Any, reason: str, text: str, note: str) -> None:
    notes = Notes()
    assert in_words(part, "x", notes, reason=reason) == TextPart(text)
    assert [str(item) for item in notes] == [note]


def test_recordings_have_the_formats_of_chat_completions() -> None:
    assert AUDIO_FORMATS == {"audio/wav": "wav", "audio/mpeg": "mp3"}


@pytest.mark.parametrize(
    ("block", "uploaded"),
    [
        ({"file_id": "f"}, True),
        ({"file": {"file_id": "f"}}, True),
        ({"source": {"type": "file", "file_id": "f"}}, True),
        ({"source": {"type": "base64"}}, False),
        ({"file": "file_id", "source": None}, False),
    ],
)
def test_an_upload_is_recognised_by_its_id(block: dict[str, Any], uploaded: bool) -> None:
    assert is_uploaded(block) is uploaded


def test_media_of_a_result_follow_by_their_kind() -> None:
    assert media_follow(ToolResult("1", "f", files=(PDF,), images=(PICTURE,))) == "The file follows."
    assert media_follow(ToolResult("1", "f", images=(PICTURE,))) == "The image follows."


def test_files_and_images_are_split_off_in_their_order() -> None:
    parts = (TextPart("a"), PDF, PICTURE, LETTER)
    assert (files_of(parts), images_of(parts)) == ((PDF, LETTER), (PICTURE,))


def test_a_file_without_a_name_gets_one() -> None:
    assert (file_name(PDF), file_name(LETTER)) == ("document.pdf", "document")
