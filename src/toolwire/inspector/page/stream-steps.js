// The answer step by step: the backend's bytes on the left, the events that were read from them on the right.

import { Component, createRef, html } from "./html.js";
import { count, duration } from "./words.js";

const WINDOW = 120; // steps that are shown at once

const HINTS = { text: "text", arguments: "args", reasoning: "think", call: "call", "end of call": "call ✓", "incomplete call": "call ✕" };

/** The state of the answer after a step: its text, and the arguments of each call so far. */
export function stateAfter(steps, last) {
  const calls = new Map();
  let text = "";
  let reasoning = "";
  for (const step of steps.slice(0, last + 1)) {
    for (const event of step.events) {
      if (event.kind === "text") text += event.text;
      else if (event.kind === "reasoning") reasoning += event.text;
      else if (event.kind === "call") calls.set(event.index, { name: event.text, text: "", done: false });
      else if (event.kind === "arguments" && calls.has(event.index)) calls.get(event.index).text += event.text;
      else if (event.kind === "end of call" && calls.has(event.index)) calls.get(event.index).done = true;
    }
  }
  return { text, reasoning, calls: [...calls.values()] };
}

export class StreamSteps extends Component {
  // `at`: the step that is shown; null follows the answer while it grows.
  state = { at: null };
  table = createRef();

  componentDidUpdate(before) {
    if (before.id !== this.props.id) this.setState({ at: null });
  }

  go(at) {
    const last = this.props.steps.length - 1;
    this.setState({ at: Math.min(last, Math.max(0, at)) }, () => {
      const row = this.table.current?.querySelector(".current");
      row?.scrollIntoView({ block: "nearest" });
    });
  }

  keydown = (event) => {
    const at = this.at();
    const goals = { ArrowRight: at + 1, ArrowLeft: at - 1, Home: 0, End: this.props.steps.length - 1 };
    if (!(event.key in goals) || event.target.type === "range" || event.ctrlKey || event.metaKey || event.altKey) return;
    event.preventDefault();
    this.go(goals[event.key]);
  };

  at() {
    return this.state.at ?? this.props.steps.length - 1;
  }

  render({ steps, wrote }) {
    if (!steps.length) return html`<p class="quiet">No answer has arrived, or its content is not kept.</p>`;
    const at = this.at();
    const last = steps.length - 1;
    const first = Math.max(0, Math.min(at - Math.floor(WINDOW / 2), steps.length - WINDOW));
    const shown = steps.slice(first, first + WINDOW);
    const following = this.state.at === null;
    return html`
      <div class="player" role="group" aria-label="Steps of the answer" onKeyDown=${this.keydown}>
        <button aria-label="First step" disabled=${at === 0} onClick=${() => this.go(0)}>⇤</button>
        <button aria-label="Step back" disabled=${at === 0} onClick=${() => this.go(at - 1)}>←</button>
        <button aria-label="Step forward" disabled=${at === last} onClick=${() => this.go(at + 1)}>→</button>
        <button aria-label="Last step" disabled=${at === last} onClick=${() => this.go(last)}>⇥</button>
        <input type="range" min="0" max=${last} value=${at} aria-label="Step"
          aria-valuetext=${`step ${at + 1} of ${steps.length}`} onInput=${(event) => this.go(Number(event.target.value))} />
        <span class="position">${count(at + 1)} of ${count(steps.length)} · ${duration(steps[at].t)}</span>
      </div>
      ${!following && html`<${Snapshot} ...${stateAfter(steps, at)} at=${at} />`}
      <div class="steps" ref=${this.table} tabindex="0" role="region" aria-label="Raw answer beside the events" onKeyDown=${this.keydown}>
        <table>
          <thead><tr><th scope="col">Time</th><th scope="col">${wrote}</th><th scope="col">Toolwire read</th></tr></thead>
          <tbody>
            ${first > 0 && html`<tr class="more"><td colspan="3">${count(first)} earlier steps: step back, or move the slider</td></tr>`}
            ${shown.map((step) => html`<${Step} key=${step.n} step=${step} current=${!following && step.n === at} later=${step.n > at} last=${step.n === last} onClick=${() => this.go(step.n)} />`)}
            ${first + WINDOW < steps.length && html`<tr class="more"><td colspan="3">${count(steps.length - first - WINDOW)} later steps</td></tr>`}
          </tbody>
        </table>
      </div>`;
  }
}

class Step extends Component {
  shouldComponentUpdate(next) {
    return next.step !== this.props.step || next.current !== this.props.current || next.later !== this.props.later;
  }

  render({ step, current, later, last, onClick }) {
    return html`
      <tr class=${`step${current ? " current" : ""}${later ? " later" : ""}`} onClick=${onClick} aria-current=${current ? "step" : undefined}>
        <td class="at">${duration(step.t)}</td>
        <td class="raw"><pre>${step.raw.replace(/\n+$/, "") || html`<span class="quiet">${last ? "(end)" : "–"}</span>`}</pre></td>
        <td class="read">${step.events.length ? step.events.map((event) => html`<${EventLine} event=${event} />`) : html`<span class="quiet">–</span>`}</td>
      </tr>`;
  }
}

function EventLine({ event }) {
  const kind = event.kind.replaceAll(" ", "-");
  return html`
    <div class="event ${kind}">
      <span class="kind">${HINTS[event.kind] ?? event.kind}${event.index === undefined ? "" : ` ${event.index}`}</span>
      <span class="text">${event.text.trim() ? event.text : event.text.replaceAll("\n", "⏎")}</span>
      ${event.repairs?.length > 0 && html`<span class="tag repair">${event.repairs.join(", ")}</span>`}
      ${event.problem && html`<span class="tag problem">${event.problem}</span>`}
    </div>`;
}

function Snapshot({ text, reasoning, calls, at }) {
  return html`
    <div class="snapshot" aria-label=${`The answer after step ${at + 1}`} role="group">
      ${reasoning && html`<p class="reasoning">${reasoning}</p>`}
      ${text && html`<p>${text}</p>`}
      ${calls.map((call) => html`<p class="growing"><code>${call.name}(<span>${call.text}</span>${call.done ? ")" : "…"}</code></p>`)}
      ${!text && !reasoning && !calls.length && html`<p class="quiet">Nothing has been read so far.</p>`}
    </div>`;
}
