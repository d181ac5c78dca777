"""`format="coach"`: a text model whose format is chosen turn by turn from recorded outcomes."""

from __future__ import annotations

import os
from collections.abc import AsyncGenerator, Callable, Iterable, Mapping
from contextlib import suppress
from typing import Final, TypedDict, Unpack

from toolwire.config.tables import COACH
from toolwire.errors import DefinitionError, StateError
from toolwire.events import Event
from toolwire.models.backends import NO_OPTIONS, Backend, Source, StreamOptions, TextBackend
from toolwire.providers.negotiation import WRITTEN_BY_DEFAULT, XML_FORMAT
from toolwire.providers.request import ChatRequest
from toolwire.runtime.state_dir import state_folder
from toolwire.telemetry.archive import Archive
from toolwire.telemetry.coach import CONFIDENCE, ENOUGH, EXPLORE, Advice, Choice, Tally, advise, choose, drawn
from toolwire.telemetry.recorder import FILE
from toolwire.telemetry.records import EndRecord, RunRecord, TurnRecord, asked_for
from toolwire.wire.format_registry import AUTO
from toolwire.wire.profiles import profile

RIVALS: Final = (WRITTEN_BY_DEFAULT, "forge_xml", XML_FORMAT)
"""Formats to try besides the one that a model is known to write: JSON between tags, and two kinds of XML."""


class Coach:
    """An `Observer` that chooses formats for one model and learns from the outcomes.

    A choice depends only on the outcomes, the seed, the run and the round.

    Args:
        model: the model's name.
        formats: the formats to choose from; without evidence the first is preferred.
        evidence: outcomes to begin with, such as `Archive.evidence`.
        explore: share of the turns that explore other formats until the best is settled.
        enough: number of outcomes after which the best is settled, however close others are.
        confidence: confidence level of the intervals.
        seed: decides which turns explore.

    Raises:
        DefinitionError: there is no format, a share is not between 0 and 1, or evidence is of another format.
    """

    def __init__(
        self,
        model: str,
        formats: Iterable[str],
        evidence: Iterable[Tally] = (),
        *,
        explore: float = EXPLORE,
        enough: int = ENOUGH,
        confidence: float = CONFIDENCE,
        seed: int | str = 0,
    ) -> None:
        self.model = model
        self._tallies = {name: Tally(name) for name in formats}
        for tally in evidence:
            if tally.format not in self._tallies:
                raise DefinitionError(f"the coach of {model} has evidence of {tally.format}, which it cannot choose")
            self._tallies[tally.format] = tally
        if not self._tallies:
            raise DefinitionError(f"the coach of {model} has no format to choose from")
        if not (0 <= explore <= 1 and 0 < confidence < 1):
            raise DefinitionError(f"explore ({explore}) and confidence ({confidence}) are shares between 0 and 1")
        self._explore = explore
        self._enough = enough
        self._confidence = confidence
        self._seed = seed

    @property
    def formats(self) -> tuple[str, ...]:
        """The formats to choose from."""
        return tuple(self._tallies)

    @property
    def tallies(self) -> tuple[Tally, ...]:
        """The outcomes so far."""
        return tuple(self._tallies.values())

    def advice(self) -> Advice:
        """The current recommendation."""
        return advise(self.tallies, enough=self._enough, confidence=self._confidence)

    def choose(self, run: str, round: int) -> Choice:
        """Return the format for one turn."""
        draw = drawn(self._seed, run, round)
        return choose(self.tallies, draw, explore=self._explore, enough=self._enough, confidence=self._confidence)

    def learn(self, format: str, *, good: bool) -> None:
        """Count an outcome; one of an unknown format is ignored."""
        if format in self._tallies:
            self._tallies[format] = self._tallies[format].and_one(good=good)

    def begin(self, run: RunRecord, /) -> None:
        """See `Observer`."""

    def turn(self, turn: TurnRecord, /) -> None:
        """See `Observer`."""
        if turn.model == self.model and turn.good is not None and not turn.replayed:
            self.learn(turn.format, good=turn.good)

    def end(self, end: EndRecord, /) -> None:
        """See `Observer`."""


class CoachOptions(TypedDict, total=False):
    """Keywords of `Coach`, which describes them and has their defaults."""

    explore: float
    enough: int
    confidence: float
    seed: int | str


class CoachedOptions(CoachOptions, total=False):
    """Keywords of `coached`, which describes them and has their defaults."""

    formats: Iterable[str]
    archive: Archive | str | os.PathLike[str] | None


class CoachedBackend:
    """A model whose coach chooses the format turn by turn.

    An agent calls `choose` before each turn and reports the outcome to the coach. Callers without turns get the
    format that is currently best.

    Args:
        backends: backends of the same model by format; `NATIVE` for fields of an API.
        coach: chooses among these formats.

    Raises:
        DefinitionError: the coach may choose a format without a backend.
    """

    def __init__(self, backends: Mapping[str, Backend], coach: Coach) -> None:
        missing = [name for name in coach.formats if name not in backends]
        if missing:
            raise DefinitionError(f"the coach of {coach.model} may choose {missing[0]}, which there is no backend for")
        self.coach = coach
        self.model = coach.model
        self._backends = dict(backends)

    @property
    def format(self) -> str:
        """The wire format that is currently best; "" for fields of an API."""
        return self._best.format

    @property
    def api(self) -> str:
        """The API through which the model is called, or ""."""
        return self._best.api

    def choose(self, run: str, round: int) -> tuple[Backend, Choice]:
        """Return the backend for one turn, and the choice with its reason."""
        choice = self.coach.choose(run, round)
        return self._backends[choice.format], choice

    def stream(self, request: ChatRequest, options: StreamOptions = NO_OPTIONS, /) -> AsyncGenerator[Event]:
        """Stream an answer in the best format; see `Backend`."""
        return self._best.stream(request, options)

    @property
    def _best(self) -> Backend:
        return self._backends[self.coach.advice().format]


def coached(
    make: Callable[[str], Backend],
    model: str,
    formats: Iterable[str] = (),
    *,
    archive: Archive | str | os.PathLike[str] | None = None,
    **options: Unpack[CoachOptions],
) -> CoachedBackend:
    """Return a model with a coach that begins with the recorded evidence.

    Args:
        make: makes the model's backend for a format; called once for each.
        model: the model's name.
        formats: the formats to choose from; if empty, `candidates` of the model.
        archive: recorded runs, or their file, which need not exist yet; None to begin without evidence.
        options: see `Coach`.
    """
    names = tuple(formats) or candidates(model)
    backends = {name: make(name) for name in names}
    format_names = {name: asked_for(backend.format) for name, backend in backends.items()}
    evidence: list[Tally] = []
    if archive is not None:
        store = archive if isinstance(archive, Archive) else Archive(archive)
        with suppress(StateError):
            evidence = store.evidence(model, tuple(format_names.values()))
    return CoachedBackend(
        {format_names[name]: backends[name] for name in names}, Coach(model, format_names.values(), evidence, **options)
    )


def text_backend(
    source: Source, *, format: str, model: str = "", api: str = "", **coaching: Unpack[CoachedOptions]
) -> Backend:
    """Return a text model with a format or, if the format is "coach", with a coach and the evidence on this machine.

    Args:
        source: see `TextBackend`.
        format: a wire format, or "coach".
        model: the model's name, to which evidence belongs.
        api: the API through which it is called, if any.
        coaching: options of `coached`.
    """
    if format != COACH:
        return TextBackend(source, format=format, model=model, api=api)
    options: CoachedOptions = {"archive": state_folder() / FILE, **coaching}
    return coached(lambda name: TextBackend(source, format=name, model=model, api=api), model, **options)


def candidates(model: str) -> tuple[str, ...]:
    """Return the formats that a coach tries with a model: the one to ask it for by its profile, then `RIVALS`."""
    first = profile(model).prompt_format
    return tuple(dict.fromkeys((*((first,) if first != AUTO else ()), *RIVALS)))
