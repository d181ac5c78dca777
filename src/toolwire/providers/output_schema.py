"""The schema that a request asks the text of an answer to follow."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import NoneType
from typing import Any

from toolwire._surface import check_type

OUTPUT = "output"
"""The name of a schema that has none, for APIs that require one."""


@dataclass(frozen=True, slots=True)
class OutputSchema:
    """A schema for the text of an answer, which is JSON then.

    Attributes:
        schema: JSON Schema of the answer; None for any JSON object.
        name: name of the schema; "" if it has none.
        description: its purpose, for the model.
        strict: whether the provider must guarantee the schema, which limits the keywords that it may have; None for the
            provider's default.
    """

    schema: Mapping[str, Any] | None
    name: str = ""
    description: str = ""
    strict: bool | None = None

    def __post_init__(self) -> None:
        """Check the types.

        Raises:
            TypeError: the schema is not a dict, or the name is not text.
        """
        check_type("schema", self.schema, (Mapping, NoneType), "a dict, the JSON Schema of the answer, or None")
        check_type("name", self.name, str, "text")
