"""The simulated services of the leaderboard's conversations: objects of its package, whose methods are the tools.

They keep their state in memory and reach nothing outside. The leaderboard evaluates the text of a model's calls as
Python; here a method is called by its name, with arguments that were parsed before.
"""

from __future__ import annotations

import copy
import importlib
import inspect
import json
from collections.abc import Callable, Mapping
from typing import Any, Final

from toolwire.errors import ConfigurationError, capture_errors
from toolwire.evaluation.conversations import ScriptedConversation

_PACKAGE: Final = "bfcl_eval.eval_checker.multi_turn_eval.func_source_code"
MODULES: Final[Mapping[str, str]] = {
    "GorillaFileSystem": "gorilla_file_system",
    "MathAPI": "math_api",
    "MessageAPI": "message_api",
    "TwitterAPI": "posting_api",
    "TicketAPI": "ticket_api",
    "TradingBot": "trading_bot",
    "TravelAPI": "travel_booking",
    "VehicleControlAPI": "vehicle_control",
}
"""The module of each service, which is also the name of the file that describes its tools."""


class BfclServices:
    """The services of one conversation; see `SimulatedServices`.

    Args:
        conversation: the conversation.

    Raises:
        ConfigurationError: the leaderboard's package, or one that it needs for a service, is not installed.
    """

    def __init__(self, conversation: ScriptedConversation) -> None:
        self._services = {name: _service(name, conversation) for name in conversation.services}
        self._methods: dict[str, Callable[..., Any]] = {}
        for service in self._services.values():
            methods = inspect.getmembers(service, inspect.ismethod)
            self._methods |= {name: method for name, method in methods if not name.startswith("_")}

    def run(self, name: str, arguments: Mapping[str, Any]) -> str:
        """See `SimulatedServices`."""
        method = self._methods.get(name)
        if method is None:
            return f"Error during execution: name '{name}' is not defined"
        result: Any = None
        with capture_errors() as captured:
            result = method(**copy.deepcopy(dict(arguments)))
        if captured.error is not None:  # the model reads it
            return f"Error during execution: {captured.error}"
        if isinstance(result, str):
            return result
        try:
            return json.dumps(result) if isinstance(result, dict) else str(result)
        except (TypeError, ValueError):  # some results contain objects
            return str(result)

    def state(self) -> Mapping[str, Any]:
        """See `SimulatedServices`."""
        return {
            name: {key: value for key, value in vars(service).items() if not key.startswith("_")}
            for name, service in self._services.items()
        }

    def named(self, name: str, positional: list[Any], keywords: Mapping[str, Any]) -> dict[str, Any]:
        """Return the arguments of a call by their names.

        Raises:
            TypeError: the tool does not take them.
            KeyError: no service has the tool.
        """
        return dict(inspect.signature(self._methods[name]).bind(*positional, **keywords).arguments)


def _service(name: str, conversation: ScriptedConversation) -> Any:
    try:
        module = importlib.import_module(f"{_PACKAGE}.{MODULES[name]}")
    except ImportError as error:
        raise ConfigurationError(
            f"the service {name} needs {error.name or 'a package'}: pip install --no-deps bfcl-eval; pip install mpmath"
        ) from error
    service = getattr(module, name)()
    if hasattr(service, "_load_scenario"):
        service._load_scenario(copy.deepcopy(conversation.setups.get(name, {})), long_context=conversation.long_context)
    return service
