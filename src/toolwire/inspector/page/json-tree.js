// A JSON value as a tree of parts that are opened one by one: a request of 90 KB has few parts that matter.

import { Component, html } from "./html.js";
import { size } from "./words.js";

const MAX_OPEN_TEXT = 400_000;

/** The name of a part: that of a tool, the role of a message, or its kind. */
function label(value) {
  if (value === null || typeof value !== "object" || Array.isArray(value)) return "";
  return value.name ?? value.function?.name ?? value.role ?? value.type ?? "";
}

const isLong = (value) => value !== null && typeof value === "object" && JSON.stringify(value).length > 80;

export function JsonTree({ value, places = {}, path = "" }) {
  if (value === null || value === undefined) return html`<p class="quiet">Nothing is kept of it.</p>`;
  if (typeof value !== "object") return html`<pre class="json">${String(value)}</pre>`;
  const entries = Array.isArray(value) ? value.map((item, at) => [at, item]) : Object.entries(value);
  const short = entries.filter(([, item]) => !isLong(item) && !(typeof item === "string" && item.length > 80));
  const long = entries.filter((entry) => !short.includes(entry));
  return html`
    ${short.length > 0 && html`<dl class="members">
      ${short.map(([key, item]) => html`<div><dt>${key}</dt><dd>${typeof item === "string" ? item : JSON.stringify(item)}</dd></div>`)}
    </dl>`}
    ${long.map(([key, item]) => html`<${Branch} key=${key} name=${key} value=${item} path=${path ? `${path}.${key}` : `${key}`} />`)}`;
}

class Branch extends Component {
  state = { open: false };

  toggled = (event) => this.setState({ open: event.currentTarget.open });

  render({ name, value, path }, { open }) {
    const text = typeof value === "string" ? value : JSON.stringify(value);
    const kind = Array.isArray(value) ? `${value.length} ×` : label(value);
    const nested = Array.isArray(value) && value.some(isLong);
    return html`
      <details class="branch" onToggle=${this.toggled}>
        <summary><span class="key">${typeof name === "number" ? `[${name}]` : name}</span>
          ${kind && html` <span class="label">${kind}</span>`} <span class="quiet">${size(text.length)}</span></summary>
        ${open && (nested
          ? html`<div class="nested"><${JsonTree} value=${value} path=${path} /></div>`
          : html`<pre class="json" tabindex="0" aria-label=${`${path}`}>${pretty(value)}</pre>`)}
      </details>`;
  }
}

function pretty(value) {
  const text = typeof value === "string" ? value : JSON.stringify(value, null, 2);
  return text.length > MAX_OPEN_TEXT ? `${text.slice(0, MAX_OPEN_TEXT)}…` : text;
}
