"""A conversation with an agent: what is typed, commands, answers that can be stopped."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Awaitable, Callable, Iterator
from contextlib import aclosing, contextmanager, nullcontext
from dataclasses import dataclass, field, replace

from toolwire.agent.run_events import (
    AgentEvent,
    ApprovalRequested,
    CorrectionAdded,
    MemberEvent,
    ReplayEnded,
    RunEnded,
    RunResumed,
    TaskStarted,
    ToolFinished,
    ToolStarted,
    TranslationNoted,
    TurnStarted,
)
from toolwire.cli.agent_options import BY_WORDS, AgentOptions
from toolwire.cli.approval_prompt import ApprovalPrompt
from toolwire.cli.ask_run import ends_of
from toolwire.cli.console import CliError, console, leave, say, styled
from toolwire.cli.event_printer import InTurn, Telling
from toolwire.cli.line_input import Lines, asking, lines, unechoed
from toolwire.cli.open_agent import Opened, opened
from toolwire.cli.small_model_prompts import CHAT_SYSTEM
from toolwire.cli.tools_command import tier_of
from toolwire.cli.transcript import LAST, Copy, load, newest, save
from toolwire.config.tables import COACH
from toolwire.errors import ToolwireError
from toolwire.events import Event, collect
from toolwire.execution.outcomes import Outcome
from toolwire.messages import Message, Part, TextPart, ToolResult
from toolwire.policy.approval import Agreement, Approval
from toolwire.policy.session import Session
from toolwire.telemetry.coached_backend import CoachedBackend
from toolwire.wire.format_registry import get_format

INTERRUPTED = 130
STOPPED = "The user stopped this before its result was there. It may have done its work or not."


async def talk(options: AgentOptions, file: str) -> None:
    """Converse with the agent that the options describe, from where a file was left if there is one."""
    history = load(str(newest().path) if file == LAST else file) if file else ()
    file = "" if file == LAST else file
    copy = Copy.standard()  # a new one, since the other terminal may go on too
    confirm = InTurn(_Aside(ApprovalPrompt(agree=options.yes, remember=True)))
    async with opened(options, confirm, CHAT_SYSTEM) as found:
        made = Chat(found, confirm, history=history, file=file, copy=copy, trace=options.trace)
        await made.converse(lines({f"/{name}": told for name, (told, _) in made.commands.items()}, made.below))


class _Aside:
    """Asks while what is typed shows, and forgets what was typed before."""

    def __init__(self, consent: ApprovalPrompt) -> None:
        self._consent = consent

    async def __call__(self, approval: Approval) -> Agreement:
        with asking():
            return await self._consent(approval)


class Chat:
    """A conversation, and the commands that somebody gives in it.

    Args:
        found: whom to talk with.
        confirm: is told what was shown.
        history: the conversation so far.
        file: where it was saved; "" nowhere.
        copy: where it is kept as it goes on; None: nowhere.
        trace: show all that happens.
    """

    def __init__(
        self,
        found: Opened,
        confirm: InTurn,
        *,
        history: tuple[Message, ...] = (),
        file: str = "",
        copy: Copy | None = None,
        trace: bool = False,
    ) -> None:
        self.history = history
        self.commands: dict[str, tuple[str, Callable[[str], Awaitable[None]]]] = {
            "help": ("what can be said here", self._help),
            "tools": ("what the model can call", self._tools),
            "format": ("the format that the model writes; /format NAME changes it", self._format),
            "tier": ("what tasks may do; /tier walk, run, crawl or auto changes it", self._tier),
            "trace": ("all that happened in the last answer; /trace on or off shows it always, or not", self._trace),
            "retry": ("ask the last question again", self._retry),
            "undo": ("forget the last question and its answer", self._undo),
            "clear": ("begin anew", self._clear),
            "save": ("/save FILE keeps the conversation", self._save),
            "load": ("/load FILE goes on with one that was kept", self._load),
            "quit": ("leave", self._quit),
        }
        self._found = found
        self._confirm = confirm
        self._file = file
        self._copy = copy
        self._telling = Telling(trace=trace, ends=ends_of(found))
        self._session = Session()
        self._before: list[tuple[str, tuple[Message, ...]]] = []  # each question, and the conversation before it
        self._events: list[AgentEvent] = []  # of the last answer
        self._working: asyncio.Task[RunEnded] | None = None
        self._reading: asyncio.Task[str | type[KeyboardInterrupt] | None] | None = None
        self._stopped = False  # the answer, by Ctrl-C
        self._warned = False  # another Ctrl-C leaves
        self._left = False
        self._blocks = True  # reading does, so that Ctrl-C is ours only while something is answered

    async def converse(self, source: Lines) -> None:
        """Read and answer, until whoever types has enough."""
        registry = self._found.agent.registry
        say(f"{self.below()}, {len(registry)} tools. /help lists the commands, Ctrl-D leaves.")
        if self.history:
            self._recall()
        self._blocks = source.blocks
        with nullcontext() if self._blocks else self._interruptible():
            while not self._left:
                text = await self._next(source)
                if text is None:
                    return
                self._warned = False
                if not text.strip():
                    continue
                try:
                    if text.startswith("/"):
                        await self._commanded(text)
                    else:
                        await self._answer(text.strip())
                except (CliError, ToolwireError) as error:
                    say(f"toolwire: {error}", "red")

    async def _next(self, source: Lines) -> str | None:
        """What is typed next; None: no more."""
        while not self._left:
            self._reading = asyncio.create_task(_read(source))
            try:
                text = await self._reading
                if not isinstance(text, type):
                    return text
                self._interrupted()
            except asyncio.CancelledError:
                if not self._left:
                    raise
            finally:
                self._reading = None
        return None

    @contextmanager
    def _interruptible(self) -> Iterator[None]:
        """Ctrl-C is ours as long as the block lasts, where the system allows it."""
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
        """Ctrl-C: the answer stops; without one, or if it does not stop, the second leaves."""
        if self._working is not None:
            if self._stopped:
                leave(INTERRUPTED)
            self._stopped = True
            self._working.cancel()
        elif self._warned:
            self._left = True
            if self._reading is not None:
                self._reading.cancel()
        else:
            self._warned = True
            say("Ctrl-C again leaves.")

    def below(self) -> str:
        """The model and how it is used, in one line."""
        agent = self._found.agent
        backend, tier = agent.backend, agent.config.tier
        way = backend.format or f"fields of {backend.api}" if backend.format or backend.api else "no API"
        return f"{backend.model}, {way}, tier {'auto' if tier is None else tier.name.lower()}"

    # -- answering ---------------------------------------------------------------------------------------------------

    async def _answer(self, task: str) -> None:
        before = self.history
        kept = _Kept(task)
        self._stopped = False
        self._working = asyncio.create_task(self._told(task, kept))
        try:
            with unechoed(), self._interruptible() if self._blocks else nullcontext():
                end = await self._working
        except asyncio.CancelledError:
            if not self._stopped:
                raise
            self._telling.aside()
            self.history = kept.messages(before)
            say("stopped" if self.history != before else "stopped; the question is forgotten", "yellow")
            self._warned = True
        else:
            self.history = end.messages if end.reason != "error" else kept.messages(before)
            if self._found.local and end.good and not end.calls and len(self._found.agent.registry):
                say("no tool was run, so nothing was looked up for this")  # small models make up what they did not read
        finally:
            self._working = None
        if self.history != before:
            self._before.append((task, before))
        self._keep()

    def _keep(self) -> None:
        """Copy the conversation, so that a terminal that is closed does not lose it."""
        if self._copy is None:
            return
        try:
            if not self.history:
                self._copy.forget()
                return
            self._copy.save(self.history, self._found.agent.backend.model)
        except CliError as error:
            self._copy = None
            say(f"no copy of the conversation is kept: {error}", "yellow")

    async def _told(self, task: str, kept: _Kept) -> RunEnded:
        self._events.clear()
        end: RunEnded | None = None
        async with aclosing(self._found.run_by.run(task, history=self.history, session=self._session)) as events:
            async for event in events:
                self._events.append(event)
                kept.add(event)
                self._telling.show(event)
                self._confirm.showed(event)
                if isinstance(event, RunEnded):
                    end = event
        assert end is not None
        return end

    # -- commands ----------------------------------------------------------------------------------------------------

    async def _commanded(self, text: str) -> None:
        """Do what a command says."""
        name, _, rest = text[1:].strip().partition(" ")
        found = self.commands.get({"exit": "quit", "q": "quit", "?": "help"}.get(name, name))
        if found is None:
            raise CliError(f"no command /{name}; /help lists them. Begin a message with a space if it begins with /")
        await found[1](rest.strip())

    async def _help(self, rest: str) -> None:
        screen = console(stderr=True)
        for name, (told, _) in self.commands.items():
            screen.print(styled(f"/{name:<8}", "bold"), styled(told), sep="")
        say("Enter sends, Alt-Enter begins a new line. Ctrl-C stops the answer, a second one leaves.")

    async def _tools(self, rest: str) -> None:
        screen = console(stderr=True)
        registry, tier = self._found.agent.registry, self._found.agent.config.tier
        if not len(registry):
            say("none; --root and --tools give some")
        for one in registry.definitions():
            out = "" if tier is None or one.tier <= tier else f", not at tier {tier.name.lower()}"
            asks = ", asks" if one.requires_confirmation else ""
            screen.print(styled(one.name, "bold"), styled(f"  {one.tier.name.lower()}{asks}{out}", "cyan"), sep="")
            if one.description:
                screen.print(styled("    " + one.description.splitlines()[0], "dim"))

    async def _format(self, rest: str) -> None:
        if rest:
            if rest not in ("default", COACH, self._found.agent.backend.api):
                get_format(rest)
            format = None if rest == "default" else rest
            self._found.agent.backend = await self._found.models.open(self._found.profile, format=format)
        backend = self._found.agent.backend
        way = f"calls are written as {backend.format}" if backend.format else f"calls are fields of {backend.api}"
        say(f"the coach chooses; {backend.format} by now" if isinstance(backend, CoachedBackend) else way)

    async def _tier(self, rest: str) -> None:
        agent = self._found.agent
        if rest:
            agent.config = replace(agent.config, tier=None if rest.lower() == BY_WORDS else tier_of(rest))
        tier = agent.config.tier
        say("each task may do what its words ask for" if tier is None else f"tasks are of tier {tier.name.lower()}")

    async def _trace(self, rest: str) -> None:
        if rest in ("on", "off"):
            self._telling.trace = rest == "on"
            say(f"trace is {rest}")
        elif rest:
            raise CliError("it is /trace, /trace on or /trace off")
        elif not self._events:
            say("nothing was answered yet")
        else:
            whole = Telling(trace=True, ends=ends_of(self._found))
            for event in self._events:
                if not isinstance(event, ApprovalRequested | RunEnded):  # standard output got the answer already
                    whole.show(event)
            whole.aside()

    async def _retry(self, rest: str) -> None:
        if not self._before:
            raise CliError("nothing was asked yet")
        task, self.history = self._before.pop()
        await self._answer(task)

    async def _undo(self, rest: str) -> None:
        if not self._before:
            raise CliError("there is nothing to forget")
        task, self.history = self._before.pop()
        self._keep()
        say(f"forgotten: {task.splitlines()[0][:60]}")

    async def _clear(self, rest: str) -> None:
        self.history, self._session, self._file = (), Session(), ""
        self._before.clear()
        self._copy = self._copy and Copy.standard()
        say("a new conversation")

    async def _save(self, rest: str) -> None:
        if not (file := rest or self._file):
            raise CliError("say where: /save FILE")
        save(file, self.history, self._found.agent.backend.model)
        self._file = file
        say(f"kept in {file}")

    async def _load(self, rest: str) -> None:
        if not rest:
            raise CliError("say which: /load FILE")
        self.history, self._session, self._file = load(rest), Session(), rest
        self._before.clear()
        self._copy = self._copy and Copy.standard()
        self._recall()

    async def _quit(self, rest: str) -> None:
        self._left = True

    def _recall(self) -> None:
        """Show where the conversation was."""
        asked = [message for message in self.history if message.role == "user"]
        said = [message for message in self.history if message.role == "assistant"]
        for label, found in (("you", asked), ("it", said)):
            text = "\n".join(part.text for part in found[-1].parts if isinstance(part, TextPart)) if found else ""
            if text:
                say(f"{label:<4} {text[:300]}")
        say(f"{len(asked)} questions so far")
        if any(isinstance(part, ToolResult) for message in self.history for part in message.parts):
            self._session.untrusted = True  # nothing says who wrote what the results hold


async def _read(source: Lines) -> str | type[KeyboardInterrupt] | None:
    """The next message. Ctrl-C is given back, since a task that raises it ends the loop."""
    try:
        return await source.read()
    except KeyboardInterrupt:
        return KeyboardInterrupt


@dataclass(slots=True)
class _Answer:
    """What came of one question to the model.

    Attributes:
        round: which it is.
        events: as it was told.
        begun: ids of the calls that began, as often as one did.
        done: what became of calls.
    """

    round: int
    events: list[Event] = field(default_factory=list)
    begun: list[str] = field(default_factory=list)
    done: list[Outcome] = field(default_factory=list)

    def messages(self) -> list[Message]:
        """It, and the results of its calls; those that never began are left out."""
        response = collect(self.events)
        done, results = list(self.done), dict[int, ToolResult]()
        for exact in (True, False):  # a model that counts badly gives several calls one id
            for at, call in enumerate(response.tool_calls):
                same = (one for one in done if one.call.id == call.id and at not in results)
                found = next((one for one in same if not exact or one.call.arguments == call.arguments), None)
                if found is not None:
                    done.remove(found)
                    results[at] = found.result
        begun = list(self.begun)
        for result in results.values():
            if result.call_id in begun:
                begun.remove(result.call_id)
        for at, call in enumerate(response.tool_calls):
            if at not in results and call.id in begun:
                begun.remove(call.id)
                results[at] = ToolResult(call.id, call.name, error=STOPPED)
        calls = [call for at, call in enumerate(response.tool_calls) if at in results]
        parts: list[Part] = [TextPart(response.content)] if response.content.strip() else []
        parts += calls
        made = [Message("assistant", tuple(parts))] if parts else []
        told = tuple(results[at] for at in sorted(results))
        return [*made, Message("tool", told)] if told else made


@dataclass(slots=True)
class _Kept:
    """What is left of an answer that was stopped."""

    task: str
    turns: list[_Answer] = field(default_factory=list)

    def add(self, event: AgentEvent) -> None:
        """Note an event."""
        match event:
            case TurnStarted():
                if self.turns and self.turns[-1].round == event.round:
                    self.turns.pop()  # it broke off, and is asked for again
                self.turns.append(_Answer(event.round))
            case ToolStarted(call):
                self.turns[-1].begun.append(call.id)
            case ToolFinished(outcome):
                self.turns[-1].done.append(outcome)
            case (
                TaskStarted()
                | MemberEvent()
                | RunEnded()
                | ApprovalRequested()
                | CorrectionAdded()
                | TranslationNoted()
            ):
                pass
            case RunResumed() | ReplayEnded():
                pass
            case _:
                self.turns[-1].events.append(event)

    def messages(self, before: tuple[Message, ...]) -> tuple[Message, ...]:
        """The conversation with what was said and done; as it was, if nothing was."""
        made = [message for one in self.turns for message in one.messages()]
        return (*before, Message("user", (TextPart(self.task),)), *made) if made else before
