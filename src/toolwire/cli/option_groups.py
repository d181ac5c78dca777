"""Options of commands as dataclasses, so that commands share them and pass them on as one value."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import fields
from functools import wraps
from typing import Any, get_type_hints


def takes_options(kind: type) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Replace the parameter `options` of a command by an option for each field of a dataclass.

    Args:
        kind: a dataclass whose fields have defaults; each annotation is `Annotated` with a `typer.Option`.
    """
    hints = get_type_hints(kind, include_extras=True)
    names = tuple(field.name for field in fields(kind))

    def decorate(command: Callable[..., None]) -> Callable[..., None]:
        @wraps(command)
        def run(**values: Any) -> None:
            options = kind(**{name: values.pop(name) for name in names if name in values})
            command(options=options, **values)

        parameters: list[inspect.Parameter] = []
        for parameter in inspect.signature(command, eval_str=True).parameters.values():
            if parameter.name != "options":
                parameters.append(parameter)
                continue
            parameters += [
                inspect.Parameter(
                    field.name, inspect.Parameter.KEYWORD_ONLY, default=field.default, annotation=hints[field.name]
                )
                for field in fields(kind)
            ]
        # Typer reads the signature and the annotations.
        run.__signature__ = inspect.Signature(  # type: ignore[attr-defined]
            [parameter.replace(kind=inspect.Parameter.KEYWORD_ONLY) for parameter in parameters]
        )
        run.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
        return run

    return decorate
