// The list of requests: only the rows in sight are in the document, so that ten thousand cost no more than thirty.

import { Component, createRef, html } from "./html.js";
import { apiName, clock, count, duration, money, plural, problemCount, state } from "./words.js";

export const ROW = 54; // height of a row in pixels, as in the style sheet
const MARGIN = 8; // rows beyond the edges

const domId = (id) => `row-${id}`;

export class ExchangeList extends Component {
  box = createRef();
  state = { top: 0, height: 800 };

  componentDidMount() {
    this.resized = new ResizeObserver(() => this.measure());
    this.resized.observe(this.box.current);
  }

  componentWillUnmount() {
    this.resized.disconnect();
  }

  measure = () => {
    const box = this.box.current;
    if (box && (box.scrollTop !== this.state.top || box.clientHeight !== this.state.height)) {
      this.setState({ top: box.scrollTop, height: box.clientHeight });
    }
  };

  componentDidUpdate(before) {
    const { rows, selected } = this.props;
    const box = this.box.current;
    const grown = rows.length - before.rows.length;
    if (grown > 0 && before.rows.length && rows[grown]?.id === before.rows[0].id && box.scrollTop > 0) {
      box.scrollTop += grown * ROW; // what the user reads stays where it is
    }
    if (selected !== before.selected) this.reveal();
  }

  reveal() {
    const at = this.props.rows.findIndex((row) => row.id === this.props.selected);
    const box = this.box.current;
    if (at < 0) return;
    if (at * ROW < box.scrollTop) box.scrollTop = at * ROW;
    if ((at + 1) * ROW > box.scrollTop + box.clientHeight) box.scrollTop = (at + 1) * ROW - box.clientHeight;
  }

  keydown = (event) => {
    const { rows, selected, onSelect } = this.props;
    const at = rows.findIndex((row) => row.id === selected);
    const page = Math.max(1, Math.floor(this.state.height / ROW) - 1);
    const moves = { ArrowDown: 1, j: 1, ArrowUp: -1, k: -1, PageDown: page, PageUp: -page };
    const ends = { Home: 0, End: rows.length - 1 };
    let next = event.key in ends ? ends[event.key] : moves[event.key] && (at < 0 ? 0 : at + moves[event.key]);
    if (event.key === "Enter" && at >= 0) {
      event.preventDefault();
      this.props.onOpen();
      return;
    }
    if (next === undefined || event.ctrlKey || event.metaKey || event.altKey || !rows.length) return;
    event.preventDefault();
    event.stopPropagation();
    onSelect(rows[Math.min(rows.length - 1, Math.max(0, next))].id);
  };

  render({ rows, selected, onSelect, onOpen }, { top, height }) {
    const first = Math.max(0, Math.floor(top / ROW) - MARGIN);
    const last = Math.min(rows.length, Math.ceil((top + height) / ROW) + MARGIN);
    const shown = rows.slice(first, last);
    const active = shown.some((row) => row.id === selected) ? domId(selected) : undefined;
    if (!rows.length) {
      return html`<div class="list empty" ref=${this.box}><p>${this.props.empty}</p></div>`;
    }
    return html`
      <div class="list" ref=${this.box} role="listbox" tabindex="0" aria-label="Requests, the newest first"
        aria-activedescendant=${active} onScroll=${this.measure} onKeyDown=${this.keydown}>
        <div role="presentation" style=${{ height: `${first * ROW}px` }}></div>
        ${shown.map((row, index) => html`
          <${Row} key=${row.id} row=${row} selected=${row.id === selected} place=${first + index + 1}
            total=${rows.length} onClick=${() => { onSelect(row.id); onOpen(); }} />`)}
        <div role="presentation" style=${{ height: `${(rows.length - last) * ROW}px` }}></div>
      </div>`;
  }
}

class Row extends Component {
  shouldComponentUpdate(next) {
    return ["row", "selected", "place", "total"].some((name) => next[name] !== this.props[name]);
  }

  render({ row, selected, place, total, onClick }) {
    const [sign, word, kind] = state(row);
    const problems = problemCount(row);
    return html`
      <div role="option" id=${domId(row.id)} class="row" aria-selected=${selected ? "true" : "false"}
        aria-posinset=${place} aria-setsize=${total} onClick=${onClick}>
        <div class="line">
          <span class="sign ${kind}" aria-hidden="true">${sign}</span><span class="hidden">${word}, </span>
          <strong class="model">${row.model || row.path || row.id}</strong>
          ${row.pinned && html`<span class="tag">pinned</span>`}
          ${row.resent_from && html`<span class="tag">sent again</span>`}
          ${row.calls.length > 0 && html`<span class="tag call">${row.calls.length === 1 ? row.calls[0] : plural(row.calls.length, "call")}</span>`}
          ${row.repairs > 0 && html`<span class="tag repair">${plural(row.repairs, "repair")}</span>`}
          ${row.failed_attempts > 0 && html`<span class="tag problem">${plural(row.failed_attempts, "fallback")}</span>`}
          ${problems > 0 && html`<span class="tag problem">${plural(problems, "problem")}</span>`}
          ${row.failure && html`<span class="tag problem">${row.status || "no answer"}</span>`}
          <span class="time">${clock(row.at) || `#${row.number}`}</span>
        </div>
        <div class="line small">
          <span class="client">${row.client || "a client"}</span>
          <span class="apis">${apiName(row.api_in)} → ${row.api_out ? apiName(row.api_out) : "–"}${row.api_out === "text" && row.format ? ` (${row.format})` : ""}</span>
          <span class="figures">
            <span title="time to the first piece of the answer, and to its end">${row.first == null ? "" : `${duration(row.first)} · `}${row.state === "running" ? "running" : duration(row.total)}</span>
            ${row.output != null && html`<span title="tokens in and out"> · ${row.estimated ? "~" : ""}${count(row.input)} → ${count(row.output)}</span>`}
            ${row.cost > 0 && html`<span> · ${money(row.cost)}</span>`}
          </span>
        </div>
      </div>`;
  }
}
