"""What a gateway adds, beside LiteLLM's proxy: `python -m benchmarks.gateway_peers --rods DIR [--litellm PROGRAM]`.

The rods are `upstream.py`, a scripted server, and `load.py`, which sends the same requests to it directly and through
each gateway, in blocks that alternate. Gateways: Toolwire, Toolwire with a recording inspector, and LiteLLM if its
program is named. Afterwards `benchmarks.gateway` measures the memory after many requests and 1,000 streams at once. The
last lines compare the figures with their bars; the load of the machine is printed at the beginning and at the end.

No process needs a network beyond loopback, so the whole program may run in a namespace of its own:
`unshare -n sh -c 'ip link set lo up && python -m benchmarks.gateway_peers ...'`.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

UPSTREAM = "http://127.0.0.1:8098"
LITELLM = """
model_list:
  - model_name: "*"
    litellm_params:
      model: "hosted_vllm/*"
      api_base: http://127.0.0.1:8098/v1
      api_key: sk-none
      use_chat_completions_api: true
litellm_settings:
  telemetry: false
"""
WHOLE = "whole text-20"
PACED = "stream text-200@5 x16"
FAST = "stream text-200 x8"
APIS = ("chat", "anthropic")


@contextmanager
def running(*command: str, **environment: str) -> Iterator[subprocess.Popen[bytes]]:
    """Run a process within the block."""
    with tempfile.NamedTemporaryFile(suffix=".log") as log:
        process = subprocess.Popen(
            command, stdout=log, stderr=log, start_new_session=True, env={**os.environ, **environment}
        )
        try:
            yield process
        finally:
            os.killpg(process.pid, signal.SIGTERM)
            process.wait()


def seconds_to(url: str, process: subprocess.Popen[bytes]) -> float:
    """Wait until a server answers, and return the seconds that took."""
    began = time.monotonic()
    while time.monotonic() - began < 120:
        try:
            urllib.request.urlopen(url, timeout=5).read()
            return time.monotonic() - began
        except (urllib.error.URLError, ConnectionError):
            assert process.poll() is None, f"the server for {url} has ended"
            time.sleep(0.02)
    raise TimeoutError(url)


def measured(rods: Path, targets: dict[str, tuple[int, int]], *, cases: str, load: str, blocks: int) -> dict[Any, Any]:
    """Return the figures of `load.py`, by case, API and gateway.

    Args:
        rods: the folder of the rods.
        targets: the port and the process of each gateway.
        cases: cases of `load.py`.
        load: its case with several connections.
        blocks: the number of blocks of each case.
    """
    with tempfile.NamedTemporaryFile(suffix=".json") as out:
        arguments = ["--blocks", str(blocks), "--cases", cases, "--load", load, "--out", out.name]
        for name, (port, pid) in targets.items():
            arguments += ["--target", f"{name}=http://127.0.0.1:{port}", "--pid", f"{name}={pid}"]
        subprocess.run([sys.executable, str(rods / "load.py"), *arguments], check=True)
        rows = json.loads(Path(out.name).read_text())
    return {(row["case"], row["api"], row["target"]): row for row in rows}


def compare(figures: dict[Any, Any], ready: dict[str, float]) -> Iterator[tuple[str, float, float]]:
    """Yield figures with their bars: what it is, the figure, and its maximum."""
    yield "seconds to ready", ready["toolwire"], 2.0
    for api in APIS:
        ours = figures[WHOLE, api, "toolwire"]
        direct = figures[WHOLE, api, "direct"]
        yield f"{api}: whole answer, added ms, median", ours["added_end_ms"], 4.0
        yield f"{api}: whole answer, added ms, p99", ours["p99_ms"] - direct["p99_ms"], 4.0
        yield (
            f"{api}: CPU seconds per 1,000 paced chunks",
            figures[PACED, api, "toolwire"]["cpu_s_per_1000_chunks"],
            0.2,
        )
        recorded = figures[WHOLE, api, "recording"]["cpu_s_per_1000_chunks"] / ours["cpu_s_per_1000_chunks"]
        yield f"{api}: CPU of a whole answer with the inspector, ratio", recorded, 1.25
        recorded = figures[FAST, api, "recording"]["cpu_s_per_1000_chunks"]
        recorded /= figures[FAST, api, "toolwire"]["cpu_s_per_1000_chunks"]
        yield f"{api}: CPU of a stream with the inspector, ratio", recorded, 1.25
        if (WHOLE, api, "litellm") in figures:
            peer = figures[WHOLE, api, "litellm"]
            yield f"{api}: added median, share of LiteLLM's", ours["added_end_ms"] / peer["added_end_ms"], 0.1
            share = (ours["p99_ms"] - direct["p99_ms"]) / (peer["p99_ms"] - direct["p99_ms"])
            yield f"{api}: added p99, share of LiteLLM's", share, 0.1
            rate = figures[FAST, api, "litellm"]["chunks_per_s"] / figures[FAST, api, "toolwire"]["chunks_per_s"]
            yield f"{api}: chunks a second, LiteLLM's share of ours", rate, 0.1


def main() -> None:
    """Measure, and print the figures beside their bars."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rods", type=Path, required=True, help="folder with upstream.py and load.py")
    parser.add_argument("--litellm", default="", help="program of LiteLLM's proxy, in an environment of its own")
    parser.add_argument("--blocks", type=int, default=7)
    parser.add_argument("--requests", type=int, default=200, help="whole answers of each block")
    parser.add_argument("--only-whole", action="store_true", help="leave out streams, memory and 1,000 streams")
    options = parser.parse_args()
    print("load of the machine:", os.getloadavg(), flush=True)
    serve = (sys.executable, "-m", "toolwire", "serve", "--backend", f"{UPSTREAM}/v1", "--port")
    started = {"toolwire": (*serve, "4101", "--no-inspect"), "recording": (*serve, "4102", "--inspect")}
    ports = {"toolwire": 4101, "recording": 4102, "litellm": 4103}
    ready: dict[str, float] = {}
    targets: dict[str, tuple[int, int]] = {}
    with tempfile.TemporaryDirectory() as folder, running(sys.executable, str(options.rods / "upstream.py")):
        if options.litellm:
            config = Path(folder, "litellm.yaml")
            config.write_text(LITELLM)
            started["litellm"] = (options.litellm, "--config", str(config), "--host", "127.0.0.1", "--port", "4103")
        with ExitStack() as stack:
            for name, command in started.items():
                own = {"LITELLM_LOCAL_MODEL_COST_MAP": "True", "NO_DOCS": "True", "TOOLWIRE_STATE": folder}
                process = stack.enter_context(running(*command, **own))
                path = "health/liveliness" if name == "litellm" else "health"
                ready[name] = seconds_to(f"http://127.0.0.1:{ports[name]}/{path}", process)
                targets[name] = ports[name], process.pid
                print(f"{name}: ready after {ready[name]:.2f} s", flush=True)
            whole = f"whole:text-20:{options.requests}"
            figures = measured(
                options.rods,
                targets,
                cases=whole if options.only_whole else f"{whole},stream:text-200:20,stream:call-200:20",
                load=f"whole:text-20:{options.requests}:8" if options.only_whole else "stream:text-200:48:8",
                blocks=options.blocks,
            )
            if not options.only_whole:
                paced = measured(
                    options.rods, targets, cases="stream:text-200@5:4:2", load="stream:text-200@5:32:16", blocks=3
                )
                figures.update(paced)
    if options.only_whole:
        return
    for case in ("memory", "streams"):
        subprocess.run([sys.executable, "-m", "benchmarks.gateway", case], check=True)
    print("load of the machine:", os.getloadavg())
    for name, figure, bar in compare(figures, ready):
        print(f"{'ok    ' if figure <= bar else 'MISSED'} {name}: {figure:.3f} (at most {bar})")


if __name__ == "__main__":
    main()
