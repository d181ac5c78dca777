"""OpenAPI documents: read from a file or a dict, checked, with references that stay inside the document."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from os import PathLike
from pathlib import Path
from typing import Any

from toolwire._surface import needs_extra, wrong_type
from toolwire.config.toml_source import read_text
from toolwire.errors import ConfigurationError, DefinitionError
from toolwire.schema.pointer import json_pointer, resolve
from toolwire.text.limits import MAX_DEPTH
from toolwire.text.truncate import shorten

METHODS = ("get", "put", "post", "patch", "delete")
"""Methods whose operations become tools; the others of HTTP say nothing that a model could use."""
MAX_FILE = 16 << 20
"""Maximum size of a file, in bytes."""
MAX_VALUES = 1_000_000
"""Maximum number of values in a document, each alias of YAML counted with all that it stands for."""
MAX_REFERENCES = 20
"""Maximum number of references that lead one to the next."""

_VERSION = re.compile(r"3\.[0-2](\.\d+)?(-\w+)?")


@dataclass(frozen=True, slots=True)
class OperationSource:
    """An operation as the document writes it.

    Attributes:
        method: the method, in lower case.
        path: the template of its path.
        item: the path item that contains it.
        operation: the operation.
    """

    method: str
    path: str
    item: Mapping[str, Any]
    operation: Mapping[str, Any]


class ApiDocument:
    """An OpenAPI document.

    Attributes:
        root: the whole document, as JSON values.
        has_old_schemas: its schemas are those of OpenAPI 3.0, which differ from JSON Schema.
    """

    def __init__(self, root: dict[str, Any]) -> None:
        version = root.get("openapi")
        if not isinstance(version, str) or not _VERSION.fullmatch(version):
            supported = "documents of OpenAPI 3.0 and 3.1 are read"
            raise ConfigurationError(f"{supported}, and this one has openapi: {version!r:.40}")
        self.root = root
        self.has_old_schemas = version.startswith("3.0")

    def follow(self, node: Any) -> Mapping[str, Any]:
        """Return the object that a node is, or that its `$ref` leads to.

        Raises:
            DefinitionError: it is not an object, or the reference cannot be followed.
        """
        for _ in range(MAX_REFERENCES):
            if not isinstance(node, Mapping):
                raise DefinitionError(f"an object was expected, not {shorten(repr(node))}")
            if not isinstance(node.get("$ref"), str):
                return node
            node = self.target(node["$ref"])
        raise DefinitionError("references lead in a circle")

    def target(self, reference: str) -> Any:
        """Return the node that a reference leads to.

        Raises:
            DefinitionError: there is none, or it is outside of the document.
        """
        # The author of the document must not choose which files are read or which servers are asked.
        if not reference.startswith("#"):
            raise DefinitionError(f"the reference {shorten(reference)!r} leads out of the document; bundle it first")
        target = resolve(self.root, reference)
        if target is None:
            raise DefinitionError(f"the reference {shorten(reference)!r} leads nowhere")
        return target

    def operations(self) -> Iterator[OperationSource]:
        """Yield the operations, in the order of the document.

        Raises:
            ConfigurationError: `paths` or one of its members is not an object.
        """
        paths = self.root.get("paths", {})
        if not isinstance(paths, Mapping):
            raise ConfigurationError("/paths: is not an object")
        for path, node in paths.items():
            if path.startswith("x-"):
                continue
            try:
                item = self.follow(node)
            except DefinitionError as error:
                raise ConfigurationError(f"{json_pointer(('paths', path))}: {error}") from error
            for method in METHODS:
                if isinstance(operation := item.get(method), Mapping):
                    yield OperationSource(method, path, item, operation)


def load_document(source: str | PathLike[str] | Mapping[str, Any], *, strict: bool = False) -> ApiDocument:
    """Return a document.

    Args:
        source: a file, JSON if its name ends in `.json` and YAML otherwise; or the document itself.
        strict: check all of it against the specification.

    Raises:
        ConfigurationError: it cannot be read, is too large, or is not a document of OpenAPI 3.
        MissingExtra: YAML or the check needs the extra `openapi`.
        TypeError: the source is of another type.
    """
    if isinstance(source, Mapping):
        where, value = "the document", source
    elif isinstance(source, str | PathLike):
        where, value = str(source), _parsed(source)
    else:
        raise wrong_type("document", source, "a dict, or the path of a file")
    try:
        root = _Copy().copied(value)
        if not isinstance(root, dict):
            raise ConfigurationError("is not an object")
        document = ApiDocument(root)
        if strict:
            _check_strictly(root)
    except ConfigurationError as error:
        raise ConfigurationError(f"{where}: {error}") from error
    return document


def _parsed(path: str | PathLike[str]) -> Any:
    if os.path.exists(path) and os.path.getsize(path) > MAX_FILE:
        raise ConfigurationError(f"{path}: has more than {MAX_FILE} bytes")
    text = read_text(path)
    try:
        return json.loads(text) if Path(path).suffix == ".json" else _from_yaml(text)
    except ValueError as error:
        raise ConfigurationError(f"{path}: {shorten(str(error))}") from error
    except RecursionError as error:
        raise ConfigurationError(f"{path}: is nested too deeply") from error


def _from_yaml(text: str) -> Any:
    with needs_extra("An OpenAPI document in YAML"):
        import yaml
    try:
        loader = _yaml_loader()(text)
        try:
            return loader.get_single_data()
        finally:
            loader.dispose()
    except yaml.YAMLError as error:
        raise ValueError(f"is not YAML: {' '.join(str(error).split())}") from error


@lru_cache(maxsize=1)
def _yaml_loader() -> Any:
    """Return a loader of plain values that leaves dates and words such as `no` as they are written."""
    import yaml

    left_out = {"tag:yaml.org,2002:timestamp", "tag:yaml.org,2002:bool"}
    resolvers = {
        first: [(tag, pattern) for tag, pattern in listed if tag not in left_out]
        for first, listed in yaml.SafeLoader.yaml_implicit_resolvers.items()
    }
    loader: Any = type("_PlainLoader", (yaml.SafeLoader,), {"yaml_implicit_resolvers": resolvers})
    loader.add_implicit_resolver("tag:yaml.org,2002:bool", re.compile("(?:true|false)$"), list("tf"))
    return loader


class _Copy:
    """A copy of a document as JSON values; aliases of YAML become copies, so their number is bounded."""

    def __init__(self) -> None:
        self._left = MAX_VALUES

    def copied(self, value: Any, depth: int = 0) -> Any:
        """Return the copy of a value.

        Raises:
            ConfigurationError: it is too large, too deep, or not JSON.
        """
        self._left -= 1
        if self._left < 0 or depth > MAX_DEPTH:
            limit = f"{MAX_VALUES:,} values" if self._left < 0 else f"{MAX_DEPTH} levels"
            raise ConfigurationError(f"has more than {limit}")
        if isinstance(value, Mapping):
            # YAML reads the keys of `responses` as numbers.
            return {str(key): self.copied(item, depth + 1) for key, item in value.items()}
        if isinstance(value, list | tuple):
            return [self.copied(item, depth + 1) for item in value]
        if value is None or isinstance(value, str | int | float | bool):
            return value
        raise ConfigurationError(f"contains a value that is not JSON, {type(value).__name__}")


def _check_strictly(root: dict[str, Any]) -> None:
    """Check a document against the specification.

    Raises:
        ConfigurationError: it violates the specification, or has a reference that leads outside.
    """
    with needs_extra("strict=True"):
        from openapi_spec_validator import OpenAPIV30SpecValidator, OpenAPIV31SpecValidator
    # The validator follows references itself, and would open files and addresses.
    for reference in _references(root):
        if not reference.startswith("#"):
            raise ConfigurationError(f"the reference {shorten(reference)!r} leads out of the document")
    validator = OpenAPIV30SpecValidator if root["openapi"].startswith("3.0") else OpenAPIV31SpecValidator
    for error in validator(root).iter_errors():
        where = json_pointer(error.absolute_path) or "the document"
        raise ConfigurationError(f"{where}: {shorten(error.message, 300)}")


def _references(value: Any) -> Iterator[str]:
    stack = [value]
    while stack:
        node = stack.pop()
        if isinstance(node, dict):
            if isinstance(reference := node.get("$ref"), str):
                yield reference
            stack += node.values()
        elif isinstance(node, list):
            stack += node
