"""The registry of formats: those of other packages, and names that are no format's."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import toolwire
from toolwire.cli import run
from toolwire.errors import DefinitionError, UnknownFormat
from toolwire.wire import format_registry
from toolwire.wire.format_registry import all_formats, formats, get_format

Install = Callable[..., None]


def format_source(name: str, *aliases: str) -> str:
    """Return a module that has a format."""
    return (
        "from dataclasses import replace\n"
        "from toolwire.wire.formats.hermes import FORMAT as HERMES\n"
        f"FORMAT = replace(HERMES, name={name!r}, aliases={aliases!r})\n"
    )


def _forget() -> None:
    for cached in (all_formats, format_registry._by_name, format_registry._by_spelling):
        cached.cache_clear()


@pytest.fixture
def install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Install]:
    """Install packages whose entry points have the names of the modules that are given with their source."""
    installed: list[str] = []

    def install_modules(**sources: str) -> None:
        points = ["[toolwire.formats]"]
        for name, source in sources.items():
            (tmp_path / f"{name}.py").write_text(source, "utf-8")
            points.append(f"{name} = {name}:FORMAT")
            installed.append(name)
        information = tmp_path / "other_formats-1.0.dist-info"
        information.mkdir()
        (information / "METADATA").write_text("Metadata-Version: 2.1\nName: other-formats\nVersion: 1.0\n", "utf-8")
        (information / "entry_points.txt").write_text("\n".join(points), "utf-8")
        monkeypatch.syspath_prepend(tmp_path)
        _forget()

    yield install_modules
    _forget()
    for name in installed:
        sys.modules.pop(name, None)


def test_formats_of_other_packages_come_last_in_the_order_of_their_entry_points(install: Install) -> None:
    own = formats()
    install(second_entry=format_source("our_a"), first_entry=format_source("our_b", "Our-Alias"))
    assert formats() == (*own, "our_b", "our_a")
    assert get_format("OUR-A").name == "our_a"
    assert get_format("our_alias") is get_format("our_b") is all_formats()[-2]


def test_such_a_format_reads_and_is_suggested(install: Install) -> None:
    install(entry=format_source("our_format"))
    text = '<tool_call>\n{"name": "f", "arguments": {"x": 1}}\n</tool_call>'
    (call,) = toolwire.parse(text, format="our_format").tool_calls
    assert (call.name, call.arguments, call.format) == ("f", {"x": 1}, "our_format")
    with pytest.raises(UnknownFormat) as caught:
        get_format("our_formatt")
    assert "our_format" in caught.value.suggestions


def test_a_package_that_ends_the_program_does_not_end_it(install: Install) -> None:
    own = formats()
    install(broken="raise SystemExit('\\x1b[2J')", entry=format_source("our_format"))
    with pytest.warns(UserWarning) as caught:
        assert [wire.name for wire in all_formats()] == [*own, "our_format"]
    (warning,) = caught
    assert str(warning.message).endswith("cannot be loaded: SystemExit: \\x1b[2J")


def test_an_interrupt_while_a_package_is_imported_ends_the_program(install: Install) -> None:
    install(broken="raise KeyboardInterrupt")
    with pytest.raises(KeyboardInterrupt):
        all_formats()


@pytest.mark.parametrize("base", ["Exception", "BaseException", "GeneratorExit"])
def test_a_package_may_raise_an_exception_of_its_own(install: Install, base: str) -> None:
    own = formats()
    install(broken=f"class Mine({base}): pass\nraise Mine('not today')", entry=format_source("our_format"))
    with pytest.warns(UserWarning, match="cannot be loaded: Mine: not today"):
        assert [wire.name for wire in all_formats()] == [*own, "our_format"]


def test_a_package_that_cannot_be_imported_does_not_disable_the_others(install: Install) -> None:
    own = formats()
    install(broken="raise RuntimeError('no\\n  library')", entry=format_source("our_format"))
    with pytest.warns(UserWarning) as caught:
        assert [wire.name for wire in all_formats()] == [*own, "our_format"]
    (warning,) = caught
    assert str(warning.message) == (
        "the wire format 'broken' of broken:FORMAT cannot be loaded: RuntimeError: no library"
    )
    assert warning.filename == __file__


def test_on_the_command_line_a_package_that_cannot_be_imported_is_one_line(
    install: Install, capsys: pytest.CaptureFixture[str]
) -> None:
    install(broken="raise RuntimeError('no library')")
    assert run(["formats"]) == 0
    assert capsys.readouterr().err == (
        "toolwire: the wire format 'broken' of broken:FORMAT cannot be loaded: RuntimeError: no library\n"
    )


def test_an_entry_point_that_is_no_format_is_refused(install: Install) -> None:
    install(entry="FORMAT = 'hermes'")
    with pytest.raises(DefinitionError, match=r"'entry' of .* is entry:FORMAT, which is not a WireFormat"):
        all_formats()


@pytest.mark.parametrize("names", [("hermes",), ("Hermes",), ("auto",), ("our_format", "AUTO")])
def test_a_format_whose_name_is_taken_is_refused(install: Install, names: tuple[str, ...]) -> None:
    install(entry=format_source(*names))
    with pytest.raises(DefinitionError, match=f"the format {names[0]!r} of entry:FORMAT has a name that is taken"):
        all_formats()


def test_of_two_formats_whose_names_differ_in_a_separator_neither_is_guessed(install: Install) -> None:
    assert get_format("qwen3.coder").name == get_format("qwen3-coder").name == "qwen3_coder"
    install(entry=format_source("qwen3-coder"))
    assert get_format("qwen3-coder").name == "qwen3-coder"
    assert get_format("qwen3_coder").name == "qwen3_coder"
    with pytest.raises(UnknownFormat):
        get_format("qwen3.coder")


def test_two_packages_with_a_format_of_the_same_name_are_refused(install: Install) -> None:
    install(one=format_source("our_format"), two=format_source("other", "our_format"))
    with pytest.raises(DefinitionError, match="the format 'other' of two:FORMAT"):
        all_formats()


def test_a_format_is_its_own_name() -> None:
    assert get_format(get_format("hermes")) is get_format("hermes")
    with pytest.raises(TypeError, match="format"):
        get_format(1)  # type: ignore[arg-type]


@pytest.mark.parametrize("name", ["auto", "AUTO"])
def test_the_name_that_selects_detection_is_no_format(name: str) -> None:
    with pytest.raises(UnknownFormat, match=f"'{name}' only reads") as caught:
        get_format(name)
    assert caught.value.suggestions == []


@pytest.mark.parametrize("name", ["Qwen/Qwen3-8B", "llama3.1:8b"])
def test_the_name_of_a_model_leads_to_its_profile(name: str) -> None:
    with pytest.raises(UnknownFormat) as caught:
        get_format(name)
    assert f"use toolwire.profile({name!r}).format" in str(caught.value)
    assert caught.value.suggestions == []


@pytest.mark.parametrize("name", ["hermess", "herme"])
def test_an_unknown_name_is_answered_with_the_nearest(name: str) -> None:
    with pytest.raises(UnknownFormat) as caught:
        get_format(name)
    assert caught.value.suggestions[0] == "hermes"
    assert 1 <= len(caught.value.suggestions) <= 3
    assert "profile" not in str(caught.value)
    assert f"unknown wire format {name!r}; did you mean hermes" in str(caught.value)
    assert "`toolwire formats` lists them all" in str(caught.value)
