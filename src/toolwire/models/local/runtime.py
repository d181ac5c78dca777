"""The in-process runtime: llama.cpp through xllamacpp, with the model's own chat template."""

from __future__ import annotations

import atexit
import os
import queue
import secrets
import threading
import weakref
from collections.abc import Generator, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from toolwire._surface import needs_extra
from toolwire.errors import ProviderError
from toolwire.events import Finish
from toolwire.messages import FinishReason
from toolwire.models.local.gguf_metadata import read_metadata

CONTEXT_TOKENS = 16_384
PROMPT_CACHE = 256
JOIN_SECONDS = 5.0
_CALLS: weakref.WeakSet[_Call] = weakref.WeakSet()


class LocalModel:
    """A loaded GGUF model.

    Calls are synchronous inside the runtime, so each runs in a thread of its own and hands its chunks over a queue.
    """

    def __init__(
        self,
        path: Path,
        *,
        context: int = CONTEXT_TOKENS,
        threads: int | None = None,
        prompt_cache: int = PROMPT_CACHE,
    ) -> None:
        """Load the model; takes seconds, in which the runtime lets no other thread run and no signal through.

        Args:
            path: a GGUF file.
            context: tokens of prompt and answer together.
            threads: processor threads; as many as this process may use if None.
            prompt_cache: MiB of memory for prompts that were read: a later prompt that begins alike is read from there.

        Raises:
            ProviderError: no such file, not a model, or no runtime installed.
        """
        try:
            with path.open("rb") as file:
                magic = file.read(4)
        except OSError as error:
            raise ProviderError(f"cannot read the model {path}: {error.strerror or error}") from error
        if magic != b"GGUF":
            raise ProviderError(f"{path} is not a GGUF file")
        xllamacpp = _runtime()
        params = xllamacpp.CommonParams()
        params.model.path = str(path)
        params.n_ctx = context
        params.n_parallel = 1
        params.warmup = False
        params.use_jinja = True
        params.force_pure_content_parser = True
        # The markers of calls are special tokens in many models, and would be left out of the text.
        params.special = True
        params.verbosity = 0
        params.cache_ram_mib = prompt_cache
        params.cpuparams.n_threads = params.cpuparams_batch.n_threads = threads or _threads()
        # The runtime always opens a port on loopback. It is not needed: a random key that nothing stores closes it.
        params.api_keys = [secrets.token_hex(32)]
        params.ui = params.endpoint_slots = params.endpoint_props = False
        try:
            self._server = xllamacpp.Server(params)
        except RuntimeError as error:
            raise ProviderError(f"{path} could not be loaded: {error}") from error
        self.path = path
        self._metadata = read_metadata(path)

    @property
    def chat_template(self) -> str:
        """The chat template in the model's file; "" if there is none."""
        return self._metadata.chat_template

    def stream(
        self,
        messages: Sequence[Mapping[str, str]],
        *,
        max_tokens: int = 768,
        temperature: float = 0.0,
        top_p: float | None = None,
        top_k: int | None = None,
        stop: Sequence[str] = (),
        seed: int | None = None,
        grammar: str = "",
    ) -> Generator[str | Finish]:
        """Yield the answer's text as it is written, then one `Finish`.

        The text has the special tokens that the model writes, except the one that ends its answer.

        Closing the iterator stops the generation at the next token. Interrupting it (Ctrl-C) returns at once; the
        runtime then stops in the background.

        Args:
            messages: dicts with `role` and `content`, put through the model's own chat template.
            max_tokens: the maximum number of tokens to write.
            temperature: the sampling temperature; 0 always takes the likeliest token.
            top_p: the share of probability that sampling is limited to; None for the runtime's default.
            top_k: the number of most probable tokens that sampling is limited to; None for the runtime's default.
            stop: texts that end the answer.
            seed: makes sampling repeatable; None for another answer each time.
            grammar: a grammar in GBNF that the answer follows; "" for none.

        Raises:
            ProviderError: the runtime refused or failed, for example because the conversation is too long for the
                context.
        """
        request = {
            "messages": [dict(message) for message in messages],
            "stream": True,
            "max_tokens": max_tokens,
            "temperature": temperature,
        }
        optional = {
            "top_p": top_p,
            "top_k": top_k,
            "stop": list(stop) or None,
            "seed": seed,
            "grammar": grammar or None,
        }
        request |= {name: value for name, value in optional.items() if value is not None}
        call = _Call(self._server, request)
        call.start()
        try:
            yield from _without_end(call.chunks(), self._metadata.control_tokens)
        except GeneratorExit:
            call.leave()
            call.join(JOIN_SECONDS)
            raise
        finally:
            call.leave()


class _Call(threading.Thread):
    """One streaming call. The queue contains chunks, then None."""

    def __init__(self, server: Any, request: dict[str, Any]) -> None:
        super().__init__(name="toolwire-local-model", daemon=True)
        self._server = server
        self._request = request
        self._queue: queue.SimpleQueue[dict[str, Any] | None] = queue.SimpleQueue()
        self._left = threading.Event()
        _CALLS.add(self)

    def run(self) -> None:
        try:
            self._server.handle_chat_completions(self._request, self._take)
        except RuntimeError as error:
            self._queue.put({"error": {"message": str(error)}})
        finally:
            self._queue.put(None)

    def _take(self, chunk: dict[str, Any]) -> bool:
        """Put a chunk into the queue; true makes the runtime stop."""
        self._queue.put(chunk)
        return self._left.is_set()

    def leave(self) -> None:
        self._left.set()

    def chunks(self) -> Iterator[str | Finish]:
        reason: str | None = None
        while (chunk := self._queue.get()) is not None:
            if "error" in chunk:
                raise ProviderError(f"the model's runtime: {chunk['error'].get('message', chunk['error'])}")
            for choice in chunk.get("choices", ())[:1]:
                if text := (choice.get("delta") or {}).get("content"):
                    yield text
                reason = choice.get("finish_reason") or reason
        if reason is None:
            raise ProviderError("the model's runtime ended without finishing its answer")
        yield Finish(FinishReason.LENGTH if reason == "length" else FinishReason.STOP)


def _without_end(chunks: Iterator[str | Finish], control_tokens: frozenset[str]) -> Iterator[str | Finish]:
    """Yield the chunks of an answer without the token that ends it, which arrives as a chunk of its own."""
    last = ""
    for chunk in chunks:
        if last and chunk != Finish(FinishReason.STOP):
            yield last
        last = chunk if isinstance(chunk, str) and chunk in control_tokens else ""
        if not last:
            yield chunk


@atexit.register
def _stop_all() -> None:
    """Stop running calls: a thread that returns from the runtime into a dying interpreter aborts the process."""
    for call in (running := [call for call in _CALLS if call.is_alive()]):
        call.leave()
    for call in running:
        call.join(JOIN_SECONDS)


def _threads() -> int:
    if hasattr(os, "sched_getaffinity"):
        return min(len(os.sched_getaffinity(0)), 8)
    return min(os.cpu_count() or 1, 8)


def _runtime() -> Any:
    """Import the runtime, whose OpenMP threads sleep after a short wait for each other.

    Threads that never sleep are ten times as slow beside other work. Threads that sleep at once write 40 % fewer tokens
    per second on a machine without other work. Threads that wait for 500 turns first lose little in either case.
    """
    os.environ.setdefault("OMP_WAIT_POLICY", "passive")
    os.environ.setdefault("GOMP_SPINCOUNT", "500")
    with needs_extra("A model on this machine"):
        import xllamacpp
    return xllamacpp
