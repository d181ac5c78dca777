"""OpenAPI documents: files and dicts, their limits, and references that stay inside."""

import json
from pathlib import Path
from typing import Any

import pytest

from toolwire import ConfigurationError, DefinitionError
from toolwire.openapi import api_document
from toolwire.openapi.api_document import ApiDocument, load_document

SMALL: dict[str, Any] = {"openapi": "3.1.0", "info": {"title": "t", "version": "1"}, "paths": {}}


def test_json_and_yaml_files_are_read(tmp_path: Path) -> None:
    (tmp_path / "a.json").write_text(json.dumps({**SMALL, "paths": {"/x": {"get": {"responses": {}}}}}))
    (tmp_path / "a.yaml").write_text(
        "openapi: 3.0.3\ninfo: {title: t, version: 1}\npaths:\n  /x:\n    get:\n      responses: {200: {}}\n"
        "      x-since: 2024-01-02\n      x-countries: [no, yes, true]\n"
    )
    for name in ("a.json", "a.yaml"):
        (source,) = load_document(tmp_path / name).operations()
        assert (source.method, source.path) == ("get", "/x")
    operation = load_document(str(tmp_path / "a.yaml")).root["paths"]["/x"]["get"]
    assert operation["responses"] == {"200": {}}
    assert (operation["x-since"], operation["x-countries"]) == ("2024-01-02", ["no", "yes", True])


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "openapi: 3.1.0\npaths: !!python/object/apply:os.system [1]",
            "is not YAML: could not determine a",
        ),
        ("openapi: [", "is not YAML"),
        ("- a", "is not an object"),
        ("swagger: '2.0'", r"documents of OpenAPI 3.0 and 3.1 are read, and this one has openapi: None"),
        ("openapi: 4.0.0", "has openapi: '4.0.0'"),
        ("a: &a [*a]\nopenapi: 3.1.0", "has more than 200 levels"),
        ("openapi: 3.1.0\na: !!binary aGk=", "contains a value that is not JSON, bytes"),
    ],
)
def test_invalid_file_is_refused(text: str, message: str, tmp_path: Path) -> None:
    (tmp_path / "a.yaml").write_text(text)
    with pytest.raises(ConfigurationError, match=message):
        load_document(tmp_path / "a.yaml")


def test_aliases_that_multiply_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x, x]"]
    lines += [f"a{at}: &a{at} [{', '.join([f'*a{at - 1}'] * 10)}]" for at in range(1, 30)]
    (tmp_path / "a.yaml").write_text("\n".join(["openapi: 3.1.0", *lines]))
    monkeypatch.setattr(api_document, "MAX_VALUES", 10_000)
    with pytest.raises(ConfigurationError, match="has more than 10,000 values"):
        load_document(tmp_path / "a.yaml")
    monkeypatch.setattr(api_document, "MAX_FILE", 20)
    with pytest.raises(ConfigurationError, match="has more than 20 bytes"):
        load_document(tmp_path / "a.yaml")


def test_deep_json_is_refused(tmp_path: Path) -> None:
    (tmp_path / "a.json").write_text("[" * 100_000)
    with pytest.raises(ConfigurationError):
        load_document(tmp_path / "a.json")
    with pytest.raises(ConfigurationError, match="cannot be read"):
        load_document(tmp_path / "none.json")
    with pytest.raises(TypeError, match="document must be a dict, or the path of a file, not 5"):
        load_document(5)  # type: ignore[arg-type]


@pytest.mark.parametrize("reference", ["other.yaml#/a", "file:///etc/passwd", "http://169.254.169.254/x", "//h/x"])
def test_references_never_lead_outside(reference: str) -> None:
    document = ApiDocument({**SMALL, "components": {"a": {"$ref": "#/components/a"}, "b": {"$ref": reference}}})
    with pytest.raises(DefinitionError, match="leads out of the document"):
        document.follow({"$ref": "#/components/b"})
    with pytest.raises(DefinitionError, match="in a circle"):
        document.follow({"$ref": "#/components/a"})
    with pytest.raises(DefinitionError, match="leads nowhere"):
        document.follow({"$ref": "#/components/c"})


def test_strict_check_names_the_place_and_opens_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("openapi_spec_validator")
    load_document(SMALL, strict=True)
    faulty = {**SMALL, "paths": {"/x": {"get": {"operationId": 5, "responses": {}}}}}
    assert load_document(faulty).root["openapi"] == "3.1.0"
    with pytest.raises(ConfigurationError, match="/paths/~1x/get"):
        load_document(faulty, strict=True)
    outside = {**SMALL, "paths": {"/x": {"$ref": "http://127.0.0.1:9/x.yaml"}}}
    with pytest.raises(ConfigurationError, match="leads out of the document"):
        load_document(outside, strict=True)
