// One request on one page: what happened, in the order in which one asks for it.

import { Component, html } from "./html.js";
import { JsonTree } from "./json-tree.js";
import { StreamSteps } from "./stream-steps.js";
import { apiName, clock, count, duration, money, plural, problemCount, size, state } from "./words.js";
import { exportAddress, rowAddress } from "./server.js";

const AS_READ = "(as the gateway read it)";

export class ExchangePage extends Component {
  shouldComponentUpdate(next) {
    return ["view", "about", "format", "resent"].some((name) => next[name] !== this.props[name]);
  }

  render({ view, about, actions, format }) {
    const { row } = view;
    const [sign, word, kind] = state(row);
    const attempt = view.attempts.at(-1);
    return html`
      <article aria-labelledby="title">
        <header class="head">
          <button class="back" onClick=${actions.back}>← Requests</button>
          <h2 id="title" tabindex="-1"><span class="sign ${kind}" aria-hidden="true">${sign}</span> ${row.model || row.path || row.id}
            <span class="state ${kind}">${word}${row.status && row.status !== 200 ? `, ${row.status}` : ""}</span></h2>
          <p class="route">
            ${row.client || "A client"} asked in <b>${apiName(row.api_in)}</b>${row.stream ? ", streamed" : ""}${attempt
              ? html` → <b>${apiName(attempt.api)}</b>${attempt.backend ? html` at <b>${attempt.backend}</b>` : ""}${attempt.model && attempt.model !== row.model && attempt.model !== attempt.backend ? html` as <b>${attempt.model}</b>` : ""}${row.passed ? ", passed on unchanged" : ""}`
              : ", and no backend was asked"}
            <span class="quiet"> ${clock(row.at)} · #${row.number} · ${row.id}</span>
          </p>
          <${Toolbar} view=${view} about=${about} actions=${actions} format=${format} />
        </header>
        ${row.failure && html`<p class="banner problem" role="note"><b>No complete answer.</b> ${row.failure}</p>`}
        ${format !== null && html`<p class="banner note" role="note">The same bytes, read again ${format ? html`as <b>${format}</b>` : "without calls in the text"}. The client got the other reading. <button onClick=${() => actions.readAs(null)}>Back to it</button></p>`}
        ${view.truncated && html`<p class="banner note" role="note">The answer was too long; its end is not kept.</p>`}
        <${Figures} view=${view} />
        <${Problems} view=${view} />
        <${Calls} calls=${view.calls} wrote=${attempt?.api === "text"} />
        <section aria-labelledby="s-stream"><h3 id="s-stream">Raw and read</h3>
          <${StreamSteps} id=${row.id} steps=${view.steps} wrote=${attempt?.api === "text" ? "The model wrote" : "The backend sent"} /></section>
        <${Translation} view=${view} />
        <${Prompt} view=${view} actions=${actions} />
        <${Answer} view=${view} />
      </article>`;
  }
}

function Toolbar({ view, about, actions, format }) {
  const { row } = view;
  const live = !about.source;
  return html`
    <div class="toolbar" role="group" aria-label="Actions">
      ${live && html`<button aria-pressed=${row.pinned ? "true" : "false"} onClick=${() => actions.pin(!row.pinned)}>${row.pinned ? "Pinned" : "Pin"}</button>`}
      ${view.request && html`<button onClick=${actions.curl}>Copy as curl</button>`}
      <a class="button" href=${rowAddress(row.id)} download>Save as test row</a>
      <a class="button" href=${exportAddress(row.id)} download>Download</a>
      ${view.steps.length > 0 && view.row.api_in !== "agent" && html`
        <label>Read as <select value=${format ?? AS_READ} onChange=${(event) => actions.readAs(event.target.value === AS_READ ? null : event.target.value)}>
          <option value=${AS_READ}>the gateway did</option><option value="">no calls in the text</option>
          ${about.formats.map((name) => html`<option value=${name}>${name}</option>`)}
        </select></label>`}
      ${live && view.request && html`<${SendAgain} row=${row} models=${about.models} send=${actions.resend} />`}
    </div>`;
}

class SendAgain extends Component {
  state = { model: null };

  render({ row, models, send }, { model }) {
    const names = models.filter((name) => !name.includes("*"));
    const chosen = model ?? row.model;
    return html`
      <form class="again" onSubmit=${(event) => { event.preventDefault(); send(chosen); }}>
        <label>Send again to <input list="models" value=${chosen} onInput=${(event) => this.setState({ model: event.target.value })} /></label>
        <datalist id="models">${names.map((name) => html`<option value=${name} />`)}</datalist>
        <button>Send</button>
      </form>`;
  }
}

function Figures({ view }) {
  const { row } = view;
  const total = row.total ?? view.steps.at(-1)?.t ?? 0;
  const marks = [];
  for (const attempt of view.attempts) {
    marks.push({ at: attempt.asked, name: `${attempt.backend || "backend"} asked`, kind: "asked" });
    if (attempt.answered != null) marks.push({ at: attempt.answered, name: "answer begins", kind: "answered" });
  }
  if (row.first != null) marks.push({ at: row.first, name: "first of the answer", kind: "first" });
  for (const call of view.calls) {
    if (call.begun != null) marks.push({ at: call.begun, name: `${call.name} begins`, kind: "call" });
    if (call.ended != null) marks.push({ at: call.ended, name: `${call.name} ${call.complete ? "is complete" : "breaks off"}`, kind: "call" });
  }
  if (row.total != null) marks.push({ at: row.total, name: "end", kind: "end" });
  marks.sort((a, b) => a.at - b.at);
  const facts = [
    ["First", duration(row.first)],
    ["Total", row.state === "running" ? "running" : duration(row.total)],
    ["Tokens in", row.input == null ? "–" : `${row.estimated ? "~" : ""}${count(row.input)}`, row.cached ? `${count(row.cached)} from the cache` : ""],
    ["Tokens out", row.output == null ? "–" : `${row.estimated ? "~" : ""}${count(row.output)}`],
    ["Cost", money(row.cost)],
    ["Calls", count(row.calls.length), row.incomplete ? `${row.incomplete} incomplete` : ""],
    ["Repairs", count(row.repairs)],
    ["Problems", count(problemCount(row))],
    ["Finish", row.finish || "–"],
  ];
  return html`
    <section aria-labelledby="s-figures"><h3 id="s-figures" class="hidden">Figures</h3>
      <dl class="facts">${facts.map(([name, value, more]) => html`<div><dt>${name}</dt><dd>${value}${more ? html`<small>${more}</small>` : ""}</dd></div>`)}</dl>
      ${total > 0 && marks.length > 0 && html`
        <div class="timeline" aria-hidden="true">
          ${row.first != null && html`<span class="span wait" style=${{ left: 0, width: `${(100 * row.first) / total}%` }}></span>
            <span class="span answer" style=${{ left: `${(100 * row.first) / total}%`, width: `${100 - (100 * row.first) / total}%` }}></span>`}
          ${marks.map((mark) => html`<span class="mark ${mark.kind}" style=${{ left: `${Math.min(100, (100 * mark.at) / total)}%` }}></span>`)}
        </div>
        <details class="times"><summary>Times</summary>
          <ol>${marks.map((mark) => html`<li><span class="at">${duration(mark.at)}</span> ${mark.name}</li>`)}</ol></details>`}
    </section>`;
}

function Problems({ view }) {
  const failed = view.attempts.filter((attempt) => attempt.failure);
  if (!view.problems.length && !(failed.length && view.attempts.length > 1)) return null;
  return html`
    <section aria-labelledby="s-problems"><h3 id="s-problems">Problems</h3>
      <ul class="problems">
        ${failed.map((attempt) => html`<li><span class="tag problem">${attempt.backend}</span> ${attempt.failure}</li>`)}
        ${view.problems.map((problem) => html`<li><span class="tag problem">${problem.kind}</span> ${problem.message}
          ${problem.raw && html`<details><summary>The text, from character ${count(problem.position)}</summary><pre tabindex="0" aria-label="Text of the problem">${problem.raw}</pre></details>`}</li>`)}
      </ul>
    </section>`;
}

function Calls({ calls, wrote }) {
  if (!calls.length) return null;
  return html`
    <section aria-labelledby="s-calls"><h3 id="s-calls">${calls.length === 1 ? "Call" : "Calls"}</h3>
      ${calls.map((call) => html`<${Call} key=${call.index} call=${call} wrote=${wrote} />`)}
    </section>`;
}

function Call({ call }) {
  const text = call.complete ? JSON.stringify(call.arguments, null, 2) : call.text;
  return html`
    <div class="card">
      <h4><code>${call.name}</code> <span class="quiet">${call.id}</span>
        ${call.complete === null && html`<span class="tag call">is being written</span>`}
        ${call.complete === false && html`<span class="tag problem">incomplete: it must not run</span>`}
        ${call.known === false && html`<span class="tag problem">no such tool was offered</span>`}
        ${call.repairs.map((repair) => html`<span class="tag repair">${repair}</span>`)}
        ${call.confidence < 1 && html`<span class="tag">confidence ${call.confidence}</span>`}
        ${call.decision && html`<span class="tag">${call.decision}</span>`}
      </h4>
      <div class=${call.raw ? "pair" : ""}>
        ${call.raw && html`<figure><figcaption>${call.repairs.length ? "Before the repairs: as it was written" : "As it was written"}</figcaption><pre tabindex="0" aria-label="Call as it was written">${call.raw}</pre></figure>`}
        <figure><figcaption>${call.repairs.length ? "After the repairs: arguments" : "Arguments"}</figcaption><pre tabindex="0" aria-label="Arguments">${text}</pre></figure>
      </div>
      ${call.issues.length > 0 && html`<ul class="problems">${call.issues.map((issue) => html`<li><span class="tag problem">schema</span> <code>${issue.pointer || "/"}</code> ${issue.message}</li>`)}</ul>`}
      ${call.result && html`<figure><figcaption>Result</figcaption><pre tabindex="0" aria-label="Result">${call.result}</pre></figure>`}
    </div>`;
}

function Translation({ view }) {
  const { row, notes, attempts } = view;
  const attempt = attempts.at(-1);
  const title = attempt && !attempt.same ? "Translation" : "Request";
  return html`
    <section aria-labelledby="s-translation"><h3 id="s-translation">${title}</h3>
      ${notes.length > 0 && html`<ul class="notes" aria-label="Losses of the translation">
        ${notes.map((note) => html`<li><span class="tag note">${note.kind}</span> <code>${note.where}</code> ${note.message}</li>`)}</ul>`}
      ${attempt && !attempt.same && notes.length === 0 && row.api_in !== "agent" && html`<p class="quiet">Everything could be translated.</p>`}
      <div class="pair">
        <div><h4>From the client <span class="quiet">${apiName(row.api_in)}</span></h4><${JsonTree} value=${view.request} />
          ${Object.keys(view.headers).length > 0 && html`<details class="branch"><summary><span class="key">headers</span> <span class="quiet">values that may be secret are not kept</span></summary>
            <dl class="members">${Object.entries(view.headers).map(([name, value]) => html`<div><dt>${name}</dt><dd>${value || html`<span class="quiet">not kept</span>`}</dd></div>`)}</dl></details>`}
        </div>
        ${attempt && row.api_in !== "agent" && html`<div><h4>To the backend <span class="quiet">${apiName(attempt.api)}</span></h4>
          ${attempt.same ? html`<p class="quiet">The same${attempt.model && attempt.model !== row.model ? `, with the model ${attempt.model}` : ""}.</p>` : html`<${JsonTree} value=${attempt.request} />`}</div>`}
      </div>
    </section>`;
}

function Prompt({ view, actions }) {
  const { parts, prefix, row } = view;
  if (!parts?.length) return null;
  const total = parts.reduce((sum, part) => sum + part.tokens, 0);
  const groups = [["tool", "Tools"], ["instructions", "Instructions"], ["message", "Messages"]]
    .map(([kind, name]) => [kind, name, parts.filter((part) => part.kind === kind)])
    .filter(([, , members]) => members.length);
  const sum = (members) => members.reduce((all, part) => all + part.tokens, 0);
  const largest = Math.max(...parts.map((part) => part.tokens), 1);
  return html`
    <section aria-labelledby="s-prompt"><h3 id="s-prompt">Prompt <span class="quiet">~${count(total)} tokens</span></h3>
      ${prefix && html`<div class="prefix">
        ${prefix.place
          ? html`<p>Its beginning is that of <button class="link" onClick=${() => actions.select(prefix.previous)}>request #${prefix.number}</button> for ~${count(prefix.shared)} of ~${count(prefix.total)} tokens. It first differs at <code>${prefix.place}</code> ${prefix.label && html`(${prefix.label})`}:</p>
            <dl class="difference"><div><dt>before</dt><dd><code>${prefix.before || "(nothing)"}</code></dd></div><div><dt>now</dt><dd><code>${prefix.after || "(nothing)"}</code></dd></div></dl>`
          : html`<p>It continues <button class="link" onClick=${() => actions.select(prefix.previous)}>request #${prefix.number}</button> of this session: all ~${count(prefix.shared)} tokens of that are its beginning, so a cache can serve them.</p>`}
      </div>`}
      ${!prefix && row.session && html`<p class="quiet">This is the first request of its session that is kept.</p>`}
      <div class="shares" aria-hidden="true">${groups.map(([kind, , members]) => html`<span class="share ${kind}" style=${{ width: `${(100 * sum(members)) / Math.max(total, 1)}%` }}></span>`)}</div>
      ${groups.map(([kind, name, members]) => html`
        <details class="branch parts" open=${members.length < 6}><summary><span class="swatch ${kind}" aria-hidden="true"></span><span class="key">${name}</span> <span class="label">${members.length} ×</span> <span class="quiet">~${count(sum(members))} tokens</span></summary>
          <table class="sizes"><thead class="hidden"><tr><th scope="col">Part</th><th scope="col">Tokens</th><th scope="col">Share</th></tr></thead><tbody>
            ${members.map((part) => html`<tr class=${prefix?.place === part.place ? "differs" : ""}><th scope="row">${part.label || part.place} <span class="quiet">${part.place}</span></th><td>~${count(part.tokens)}</td>
              <td><span class="bar ${kind}" style=${{ width: `${(100 * part.tokens) / largest}%` }}></span></td></tr>`)}
          </tbody></table></details>`)}
    </section>`;
}

function Answer({ view }) {
  if (!view.content && !view.reasoning && !view.sent) return null;
  return html`
    <section aria-labelledby="s-answer"><h3 id="s-answer">Answer</h3>
      ${view.reasoning && html`<details class="branch"><summary><span class="key">Reasoning</span> <span class="quiet">${size(view.reasoning.length)}</span></summary><p class="prose">${view.reasoning}</p></details>`}
      ${view.content && html`<p class="prose">${view.content}</p>`}
      ${view.sent && html`<details class="branch"><summary><span class="key">Bytes to the client</span> <span class="quiet">${apiName(view.row.api_in)}, ${size(view.sent.length)}</span></summary><pre tabindex="0" aria-label="Bytes to the client">${view.sent}</pre></details>`}
    </section>`;
}
