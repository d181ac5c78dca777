"""An interactive conversation with an agent: input, commands, and answers that can be stopped."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Awaitable, Callable, Iterator
from contextlib import aclosing, contextmanager, nullcontext
from dataclasses import replace

from toolwire.agent.config import AgentConfig
from toolwire.agent.run_events import AgentEvent, ApprovalRequested, RunEnded
from toolwire.agent.task import task_message
from toolwire.cli.agent_options import AgentOptions
from toolwire.cli.approval_prompt import ApprovalPrompt
from toolwire.cli.ask_run import RunOutcome, turn_enders
from toolwire.cli.attached_files import attached_name, read_attachment, read_attachments
from toolwire.cli.console import CliError, console, leave, say, styled
from toolwire.cli.event_printer import EventPrinter, OrderedPrompt
from toolwire.cli.line_input import LineSource, open_line_source, with_echo, without_echo
from toolwire.cli.named_session import NamedSession
from toolwire.cli.open_agent import OpenAgent, open_from_options
from toolwire.cli.partial_answer import PartialAnswer
from toolwire.cli.small_model_prompts import CHAT_SYSTEM
from toolwire.cli.tools_command import print_definition, tier_of
from toolwire.cli.transcript import LAST, AutosavedChat, load, newest, save
from toolwire.config.tables import COACH, INTENT
from toolwire.errors import ToolwireError
from toolwire.messages import FilePart, ImagePart, Message, TextPart, ToolResult
from toolwire.policy.approval import Approval, ApprovalAnswer
from toolwire.policy.intent import TierGate
from toolwire.policy.session import Session
from toolwire.telemetry.coached_backend import CoachedBackend
from toolwire.text.counted import counted
from toolwire.tools import Tier
from toolwire.wire.format_registry import get_format

INTERRUPTED = 130


async def converse_with_agent(options: AgentOptions, file: str, *, require_tool_call: bool = False) -> bool:
    """Converse with the agent that the options describe; return whether every message was answered.

    Args:
        options: name the agent, and perhaps a stored session.
        file: path of the conversation to continue; "" for a new one, or that of the session.
        require_tool_call: whether an answer counts only if a tool call succeeded; see `RunEnded.has_result`.
    """
    attached = read_attachments(options.attach)
    session = NamedSession(options.session) if options.session is not None else None
    history = load(str(newest().path) if file == LAST else file) if file else ()
    file = "" if file == LAST else file
    copy = session or AutosavedChat.standard()  # a new one: another terminal may continue the old conversation too
    confirm = OrderedPrompt(EchoingPrompt(ApprovalPrompt(approve=options.yes, remember=True)))
    async with open_from_options(options, confirm, CHAT_SYSTEM) as opened_agent:
        chat = Chat(opened_agent, confirm, history=history, file=file, copy=copy, trace=options.trace)
        chat.attached += attached
        chat.require_tool_call = require_tool_call
        await chat.converse(
            open_line_source({f"/{name}": summary for name, (summary, _) in chat.commands.items()}, chat.status_line)
        )
    return chat.all_answered


class EchoingPrompt:
    """An approval prompt with echo switched on; it discards earlier input."""

    def __init__(self, prompt: ApprovalPrompt) -> None:
        self._prompt = prompt

    async def __call__(self, approval: Approval) -> ApprovalAnswer:
        """Return the answer."""
        with with_echo():
            return await self._prompt(approval)


class Chat:
    """A conversation, and the commands that the user gives in it.

    Args:
        opened_agent: the agent to talk with.
        confirm: notified of each event that was shown.
        history: the conversation so far, unless a named session has one.
        file: path to which it was saved; "" if it was not.
        copy: session or file to which it is saved after each answer; None for neither.
        trace: show every event in full.

    Attributes:
        attached: images and files that the next message will contain.
        all_answered: whether every message has been answered so far.
        require_tool_call: whether an answer counts only if a tool call succeeded; see `RunEnded.has_result`.
    """

    def __init__(
        self,
        opened_agent: OpenAgent,
        confirm: OrderedPrompt,
        *,
        history: tuple[Message, ...] = (),
        file: str = "",
        copy: AutosavedChat | NamedSession | None = None,
        trace: bool = False,
    ) -> None:
        named = copy if isinstance(copy, NamedSession) else None
        self.history = history if named is None else named.messages
        self.attached: list[ImagePart | FilePart] = []
        self.all_answered = True
        self.require_tool_call = False
        self.commands: dict[str, tuple[str, Callable[[str], Awaitable[None]]]] = {
            "help": ("list the commands", self._help),
            "tools": ("list the tools that the model can call", self._tools),
            "attach": ("/attach FILE adds an image or a file to the next message; an address works too", self._attach),
            "format": ("show the format in which the model writes calls; /format NAME changes it", self._format),
            "tier": ("show the tier of tasks; /tier crawl, walk, run or intent changes it", self._tier),
            "trace": (
                "show every event of the last answer; /trace on shows them always, /trace off does not",
                self._trace,
            ),
            "retry": ("ask the last question again", self._retry),
            "undo": ("remove the last question and its answer", self._undo),
            "clear": ("start a new conversation", self._clear),
            "save": ("/save FILE saves the conversation", self._save),
            "load": ("/load FILE continues a saved conversation", self._load),
            "quit": ("leave the chat", self._quit),
        }
        self._agent = opened_agent
        self._confirm = confirm
        self._file = file
        self._copy = copy
        self._printer = EventPrinter(trace=trace, ends=turn_enders(opened_agent))
        self._session = Session() if named is None else named.session
        self._questions: list[tuple[Message, tuple[Message, ...]]] = []  # each question, and the conversation before it
        self._events: list[AgentEvent] = []  # of the last answer
        self._answer_task: asyncio.Task[RunEnded] | None = None
        self._read_task: asyncio.Task[str | type[KeyboardInterrupt] | None] | None = None
        self._stopped = False  # whether Ctrl-C stopped the answer
        self._warned = False  # whether another Ctrl-C leaves
        self._leaving = False
        self._blocks = True  # whether reading blocks the loop: then Ctrl-C is handled here only during an answer

    async def converse(self, source: LineSource) -> None:
        """Read messages and answer them until the user leaves."""
        registry = self._agent.agent.registry
        say(f"{self.status_line()}, {len(registry)} tools. /help lists the commands, Ctrl-D leaves.")
        if self.history:
            self._recall()
        if self.attached:
            self._say_attached()
        self._blocks = source.blocks
        with nullcontext() if self._blocks else self._interruptible():
            while not self._leaving:
                text = await self._next(source)
                if text is None:
                    return
                self._warned = False
                if not text.strip():
                    continue
                try:
                    if text.startswith("/"):
                        await self._run_command(text)
                    else:
                        await self._answer(task_message([text.strip(), *self.attached]))
                except (CliError, ToolwireError) as error:
                    self.all_answered = self.all_answered and text.startswith("/")
                    say(f"toolwire: {error}", "red")

    async def _next(self, source: LineSource) -> str | None:
        """Return the next message; None at the end."""
        while not self._leaving:
            self._read_task = asyncio.create_task(_read(source))
            try:
                text = await self._read_task
                if not isinstance(text, type):
                    return text
                self._interrupted()
            except asyncio.CancelledError:
                if not self._leaving:
                    raise
            finally:
                self._read_task = None
        return None

    @contextmanager
    def _interruptible(self) -> Iterator[None]:
        """Handle Ctrl-C while the block runs, where the system supports it."""
        loop = asyncio.get_running_loop()
        try:
            loop.add_signal_handler(signal.SIGINT, self._interrupted)
        except NotImplementedError:  # Windows: Ctrl-C ends the program
            yield
            return
        try:
            yield
        finally:
            loop.remove_signal_handler(signal.SIGINT)

    def _interrupted(self) -> None:
        """Stop the answer; a second Ctrl-C leaves if there is no answer or it does not stop."""
        if self._answer_task is not None:
            if self._stopped:
                leave(INTERRUPTED)
            self._stopped = True
            self._answer_task.cancel()
        elif self._warned:
            self._leaving = True
            if self._read_task is not None:
                self._read_task.cancel()
        else:
            self._warned = True
            say("Ctrl-C again leaves.")

    def status_line(self) -> str:
        """Return one line about the model, its format and the tier."""
        agent = self._agent.agent
        backend = agent.backend
        way = backend.format or f"fields of {backend.api}" if backend.format or backend.api else "no API"
        return f"{backend.model}, {way}, {_tier_text(agent.config)}"

    # -- answering ---------------------------------------------------------------------------------------------------

    async def _answer(self, task: Message) -> None:
        before = self.history
        partial = PartialAnswer(task)
        self._stopped = False
        self._answer_task = asyncio.create_task(self._run_task(task, partial))
        try:
            with without_echo(), self._interruptible() if self._blocks else nullcontext():
                end = await self._answer_task
        except asyncio.CancelledError:
            if not self._stopped:
                raise
            self._printer.pause()
            self.history = partial.messages(before)
            say("stopped" if self.history != before else "stopped; the question was removed", "yellow")
            self._warned = True
        else:
            self.history = end.messages if end.reason != "error" else partial.messages(before)
            outcome = self._outcome()
            missing = outcome.missing_call(self.require_tool_call) if end.good else ""
            self.all_answered = self.all_answered and end.good and not missing
            if end.good:
                self.attached.clear()  # kept until then, so that a failed message can be sent again
            if missing:
                say(f"toolwire: {missing}", "red")
            elif self._agent.local and end.good and outcome.tools and outcome.without_call:
                # Small models invent what they did not read.
                say(f"{outcome.without_call}, so this answer is not based on any lookup")
        finally:
            self._answer_task = None
        if self.history != before:
            self._questions.append((task, before))
        self._autosave()

    def _outcome(self) -> RunOutcome:
        """Return the outcome of the last answer."""
        agent = self._agent.agent
        outcome = RunOutcome(bool(len(agent.registry)), agent.config.require_tool_call)
        for event in self._events:
            outcome.add(event)
        return outcome

    def _autosave(self) -> None:
        """Save a copy, so that closing the terminal does not lose the conversation."""
        if self._copy is None:
            return
        try:
            if not self.history:
                self._copy.forget()
                return
            self._copy.save(self.history, self._agent.agent.backend.model)
        except CliError as error:
            self._copy = None
            say(f"the conversation is no longer saved automatically: {error}", "yellow")

    async def _run_task(self, task: Message, partial: PartialAnswer) -> RunEnded:
        self._events.clear()
        end: RunEnded | None = None
        async with aclosing(self._agent.runner.run(task.parts, history=self.history, session=self._session)) as events:
            async for event in events:
                self._events.append(event)
                partial.add(event)
                self._printer.show(event)
                self._confirm.mark_shown(event)
                if isinstance(event, RunEnded):
                    end = event
        assert end is not None
        return end

    # -- commands ----------------------------------------------------------------------------------------------------

    async def _run_command(self, text: str) -> None:
        """Run a command."""
        name, _, rest = text[1:].strip().partition(" ")
        command = self.commands.get({"exit": "quit", "q": "quit", "?": "help"}.get(name, name))
        if command is None:
            raise CliError(
                f"unknown command /{name}; /help lists the commands. Begin a message with a space if it begins with /"
            )
        await command[1](rest.strip())

    async def _help(self, rest: str) -> None:
        screen = console(stderr=True)
        for name, (summary, _) in self.commands.items():
            screen.print(styled(f"/{name:<8}", "bold"), styled(summary), sep="")
        say("Enter sends, Alt-Enter begins a new line. Ctrl-C stops the answer, a second one leaves.")

    async def _tools(self, rest: str) -> None:
        screen = console(stderr=True)
        registry, tier = self._agent.agent.registry, self._agent.agent.config.tier
        if not len(registry):
            say("no tools; --root and --tools add some")
        for definition in registry.definitions():
            out = "" if tier is None or definition.tier <= tier else f", not at tier {tier.name.lower()}"
            print_definition(screen, definition, definition.tier.name.lower(), out)

    async def _attach(self, rest: str) -> None:
        if rest:
            self.attached.append(read_attachment(rest))
        elif not self.attached:
            raise CliError("usage: /attach FILE")
        self._say_attached()

    def _say_attached(self) -> None:
        say(f"attached to the next message: {', '.join(map(attached_name, self.attached))}")

    async def _format(self, rest: str) -> None:
        if rest:
            if rest not in ("default", COACH, self._agent.agent.backend.api):
                get_format(rest)
            await self._agent.use_format(None if rest == "default" else rest)
        backend = self._agent.agent.backend
        way = f"calls are written as {backend.format}" if backend.format else f"calls are fields of {backend.api}"
        say(f"the coach chooses; at present {backend.format}" if isinstance(backend, CoachedBackend) else way)

    async def _tier(self, rest: str) -> None:
        agent = self._agent.agent
        if rest:
            gate = TierGate(min_tier=Tier.WALK) if rest.lower() == INTENT else None
            agent.config = replace(agent.config, tier=None if gate else tier_of(rest), gate=gate)
        say(_tier_text(agent.config))

    async def _trace(self, rest: str) -> None:
        if rest in ("on", "off"):
            self._printer.trace = rest == "on"
            say(f"trace is {rest}")
        elif rest:
            raise CliError("usage: /trace, /trace on or /trace off")
        elif not self._events:
            say("there is no answer yet")
        else:
            printer = EventPrinter(trace=True, ends=turn_enders(self._agent))
            for event in self._events:
                if not isinstance(event, ApprovalRequested | RunEnded):  # standard output has the answer already
                    printer.show(event)
            printer.pause()

    async def _retry(self, rest: str) -> None:
        if not self._questions:
            raise CliError("no question was asked yet")
        task, self.history = self._questions.pop()
        await self._answer(task)

    async def _undo(self, rest: str) -> None:
        if not self._questions:
            raise CliError("there is no question to remove")
        task, self.history = self._questions.pop()
        self._autosave()
        say(f"removed: {task.text.splitlines()[0][:60]}")

    async def _clear(self, rest: str) -> None:
        name = self._copy.name if isinstance(self._copy, NamedSession) else ""
        self._restart((), "")
        self.attached.clear()
        say(f"a new conversation; the session {name} stays as it was" if name else "a new conversation")

    async def _save(self, rest: str) -> None:
        if not (file := rest or self._file):
            raise CliError("usage: /save FILE")
        save(file, self.history, self._agent.agent.backend.model)
        self._file = file
        say(f"saved to {file}")

    async def _load(self, rest: str) -> None:
        if not rest:
            raise CliError("usage: /load FILE")
        self._restart(load(rest), rest)
        self._recall()

    def _restart(self, history: tuple[Message, ...], file: str) -> None:
        """Continue from this history, in a new session with a new automatic copy."""
        self.history, self._session, self._file = history, Session(), file
        self._questions.clear()
        self._copy = self._copy and AutosavedChat.standard()  # a named session stays as it was

    async def _quit(self, rest: str) -> None:
        self._leaving = True

    def _recall(self) -> None:
        """Show the last question and answer of a continued conversation."""
        questions = [message for message in self.history if message.role == "user"]
        answers = [message for message in self.history if message.role == "assistant"]
        for label, messages in (("you", questions), ("it", answers)):
            text = "\n".join(part.text for part in messages[-1].parts if isinstance(part, TextPart)) if messages else ""
            if text:
                say(f"{label:<4} {text[:300]}")
        say(f"{counted(len(questions), 'question')} so far")
        if any(isinstance(part, ToolResult) for message in self.history for part in message.parts):
            self._session.untrusted = True  # the origin of these results is unknown


async def _read(source: LineSource) -> str | type[KeyboardInterrupt] | None:
    """Return the next message, or KeyboardInterrupt for Ctrl-C, because a task that raises it ends the loop."""
    try:
        return await source.read()
    except KeyboardInterrupt:
        return KeyboardInterrupt


def _tier_text(config: AgentConfig) -> str:
    """Return which tools the tasks of an agent may use."""
    if config.gate is not None:
        return "the words of each task unlock its tools"
    return "all tools" if config.tier is None else f"tools up to tier {config.tier.name.lower()}"
