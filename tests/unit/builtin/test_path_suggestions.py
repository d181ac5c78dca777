"""A path that is not there: the error names what may have been meant, and nothing that is outside or hidden."""

from pathlib import Path

import pytest

from toolwire.builtin import path_suggestions
from toolwire.builtin.reading import Reading
from toolwire.builtin.searching import Searching
from toolwire.builtin.toolsets import builtin_tools
from toolwire.errors import ToolError
from toolwire.runtime.allowed_roots import AllowedRoots
from toolwire.search.re2_search import is_skipped


@pytest.fixture
def roots(tmp_path: Path) -> AllowedRoots:
    for name in ("work/settings/server.toml", "work/docs/usage.md", "work/.hidden/passwords.toml", "outside/far.toml"):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("workers = 6\n")
    (tmp_path / "work" / "link").symlink_to(tmp_path / "outside")
    return AllowedRoots(tmp_path / "work")


@pytest.mark.parametrize(
    ("path", "said"),
    [
        ("config/server.toml", "config/server.toml: No such file or directory; did you mean settings/server.toml?"),
        ("settings/sever.toml", "did you mean settings/server.toml?"),
        ("usage.md", "did you mean docs/usage.md?"),
    ],
)
def test_files_of_the_same_name_are_suggested(roots: AllowedRoots, path: str, said: str) -> None:
    with pytest.raises(ToolError) as caught:
        Reading(roots).read_file(path)
    assert said in str(caught.value)
    with pytest.raises(ToolError) as caught:
        Searching(roots).search_files("workers", path)
    assert said in str(caught.value)


@pytest.mark.parametrize(
    "path", ["passwords.toml", "far.toml", "quite-another.txt", "config", "usages.md", "server.tom", "doc/sever.toml"]
)
def test_other_names_are_not_suggested(roots: AllowedRoots, path: str) -> None:
    for use in (Reading(roots).read_file, Reading(roots).list_dir):
        with pytest.raises(ToolError) as caught:
            use(path)
        assert str(caught.value) == f"{path}: No such file or directory"


def test_directories_are_suggested_for_directories(roots: AllowedRoots) -> None:
    for path, said in (("doc", "; did you mean docs?"), ("old/docs", "; did you mean docs?"), ("server.toml", "")):
        with pytest.raises(ToolError) as caught:
            Reading(roots).list_dir(path)
        assert str(caught.value) == f"{path}: No such file or directory{said}"


def test_suggestions_can_be_disabled(roots: AllowedRoots) -> None:
    listing, reading, searching, *_ = builtin_tools(roots, suggestions=False)
    for use, given in ((listing, ["doc"]), (reading, ["usage.md"]), (searching, ["workers", "usage.md"])):
        with pytest.raises(ToolError, match=r"No such file or directory$"):
            use(*given)


def test_the_search_is_bounded_and_opens_no_file(
    tmp_path: Path, roots: AllowedRoots, monkeypatch: pytest.MonkeyPatch
) -> None:
    for at in range(20):
        (tmp_path / "work" / "aaa" / str(at)).mkdir(parents=True)
    monkeypatch.setattr(AllowedRoots, "_opened", None)
    assert len(list(roots.names(".", is_skipped, deep=True, most=100))) == 27
    assert len(list(roots.names(".", is_skipped, deep=False, most=100))) == 5
    monkeypatch.setattr(path_suggestions, "LOOKED_AT", 10)
    with pytest.raises(ToolError, match=r"No such file or directory$"):
        Searching(roots, ripgrep=False).search_files("workers", "other/usage.md")


def test_other_errors_are_unchanged(roots: AllowedRoots) -> None:
    with pytest.raises(ToolError, match="is a directory") as caught:
        Reading(roots).read_file("docs")
    assert "did you mean" not in str(caught.value)
