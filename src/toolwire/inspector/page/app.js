// The page: the list of requests on the left, one request on the right; one of them on a narrow screen.

import { Component, createRef, html, render } from "./html.js";
import { ExchangeList } from "./exchange-list.js";
import { ExchangePage } from "./exchange-page.js";
import * as server from "./server.js";
import { count, plural, problemCount } from "./words.js";

const REFRESH = 1000; // milliseconds between two looks at an answer that grows
const THEMES = ["auto", "light", "dark"];

const words = (row) =>
  [row.model, row.client, row.backend, row.backend_model, row.api_in, row.api_out, row.format, row.session, row.id,
    row.finish, row.failure, row.state, ...row.calls, ...Object.keys(row.problems)].join("\n").toLowerCase();

class App extends Component {
  rows = new Map(); // by id
  texts = new Map(); // the searched text of each row
  state = {
    about: null, version: 0, selected: null, open: false, view: null, format: null, error: "", connection: "connecting",
    text: "", found: null, problems: false, pinned: false, message: "", theme: localStorage.getItem("theme") ?? "auto",
    curl: "", help: false,
  };

  async componentDidMount() {
    document.addEventListener("keydown", this.keydown);
    addEventListener("hashchange", this.fromAddress);
    this.dress();
    try {
      this.setState({ about: await server.about() });
      const { rows, version, more } = await server.rows();
      this.take(rows);
      this.fromAddress();
      if (this.state.about.source) this.setState({ connection: "file" });
      else server.follow(version, (change) => this.changed(change), (connection) => this.setState({ connection }));
      if (more) await this.older();
    } catch (error) {
      this.setState({ error: error.message });
    }
  }

  async older() {
    for (let more = true; more; ) {
      const lowest = Math.min(...[...this.rows.values()].map((row) => row.number));
      const answer = await server.rows(lowest);
      this.take(answer.rows);
      more = answer.more;
    }
  }

  take(rows) {
    for (const row of rows) {
      this.rows.set(row.id, row);
      this.texts.set(row.id, words(row));
    }
    this.setState((state) => ({ version: state.version + 1 }));
  }

  changed({ rows, oldest }) {
    for (const row of this.rows.values()) {
      if (row.number < oldest && !row.pinned && row.state !== "running") {
        this.rows.delete(row.id);
        this.texts.delete(row.id);
      }
    }
    this.take(rows);
    const row = rows.find((each) => each.id === this.state.selected);
    if (row && this.state.format === null) this.refresh(row);
  }

  /** Read the steps that have arrived since, at most once a second; all of it once the answer has ended. */
  async refresh(row) {
    if (this.refreshing) return void (this.again = row);
    this.refreshing = true;
    const before = this.state.view;
    try {
      const start = row.state === "running" && before?.row.id === row.id ? before.steps.length : 0;
      const view = await server.view(row.id, start);
      if (this.state.selected === row.id && this.state.format === null) {
        this.setState({ view: start ? { ...before, ...view, steps: [...before.steps, ...view.steps] } : view });
      }
    } catch (error) {
      this.say(error.message);
    }
    setTimeout(() => {
      this.refreshing = false;
      const next = this.again;
      this.again = null;
      if (next && next.id === this.state.selected) this.refresh(next);
    }, REFRESH);
  }

  fromAddress = () => {
    const id = decodeURIComponent(location.hash.slice(1));
    if (id && this.rows.has(id) && id !== this.state.selected) this.select(id, true);
  };

  async select(id, open = this.state.open) {
    if (id === this.state.selected) return this.setState({ open });
    history.replaceState(null, "", `#${encodeURIComponent(id)}`);
    this.setState({ selected: id, open, format: null });
    clearTimeout(this.pending);
    // Keys that are held down pass many rows: only where they stop, the request is read.
    this.pending = setTimeout(async () => {
      try {
        const view = await server.view(id);
        if (this.state.selected === id) this.setState({ view });
      } catch (error) {
        this.say(error.message);
      }
    }, this.state.view ? 80 : 0);
  }

  openPage = () => {
    this.setState({ open: true }, () => setTimeout(() => document.getElementById("title")?.focus(), 120));
  };

  back = () => this.setState({ open: false }, () => document.querySelector(".list")?.focus());

  say(message) {
    this.setState({ message });
    clearTimeout(this.silence);
    this.silence = setTimeout(() => this.setState({ message: "" }), 4000);
  }

  actions = {
    back: () => this.back(),
    select: (id) => (this.rows.has(id) ? this.select(id) : this.say("That request is not kept any more.")),
    pin: async (pinned) => this.attempt(async () => {
      const { selected, view } = this.state;
      await server.pin(selected, pinned);
      this.setState({ view: { ...view, row: { ...view.row, pinned } } });
      this.say(pinned ? "Pinned: it stays while older requests are dropped." : "Not pinned any more.");
    }),
    curl: async () => this.attempt(async () => {
      const command = await server.curl(this.state.selected);
      if (navigator.clipboard) {
        await navigator.clipboard.writeText(command).then(
          () => this.say("Copied. Set TOOLWIRE_KEY to a key of the gateway."), () => this.setState({ curl: command }));
      } else this.setState({ curl: command });
    }),
    readAs: async (format) => this.attempt(async () => {
      const { selected } = this.state;
      const view = format === null ? await server.view(selected) : await server.readAs(selected, format);
      if (this.state.selected === selected) this.setState({ view, format });
    }),
    resend: async (model) => this.attempt(async () => {
      const { id } = await server.resend(this.state.selected, model);
      this.say("Sent again: the new request is at the top of the list.");
      const wait = setInterval(() => {
        if (!this.rows.has(id)) return;
        clearInterval(wait);
        this.select(id);
      }, 50);
    }),
  };

  async attempt(action) {
    try {
      await action();
    } catch (error) {
      this.say(error.message);
    }
  }

  typed = (event) => {
    const text = event.target.value;
    this.setState({ text, found: null });
    clearTimeout(this.searching);
    if (text.trim().length < 2) return;
    this.searching = setTimeout(() => this.attempt(async () => {
      const { ids } = await server.search(text.trim());
      if (this.state.text === text) this.setState({ found: new Set(ids) });
    }), 300);
  };

  shown() {
    const { text, found, problems, pinned } = this.state;
    const wanted = text.toLowerCase().split(/\s+/).filter(Boolean);
    return [...this.rows.values()]
      .filter((row) => (!problems || row.failure || row.incomplete || problemCount(row)) && (!pinned || row.pinned))
      .filter((row) => found?.has(row.id) || wanted.every((word) => this.texts.get(row.id).includes(word)))
      .sort((a, b) => b.number - a.number);
  }

  keydown = (event) => {
    const typing = /^(INPUT|SELECT|TEXTAREA)$/.test(event.target.tagName);
    if (event.key === "Escape") {
      if (this.state.help || this.state.curl) this.setState({ help: false, curl: "" });
      else if (typing) event.target.blur();
      else this.back();
      return;
    }
    if (typing || event.ctrlKey || event.metaKey || event.altKey) return;
    const keys = {
      "/": () => document.getElementById("search").focus(),
      j: () => this.move(1), k: () => this.move(-1),
      p: () => this.state.view && !this.state.about.source && this.actions.pin(!this.state.view.row.pinned),
      "?": () => this.setState({ help: true }),
    };
    if (event.key in keys) {
      event.preventDefault();
      keys[event.key]();
    }
  };

  move(by) {
    const rows = this.shown();
    const at = rows.findIndex((row) => row.id === this.state.selected);
    const next = rows[at < 0 ? 0 : Math.min(rows.length - 1, Math.max(0, at + by))];
    if (next) this.select(next.id);
  }

  dress() {
    document.documentElement.dataset.theme = this.state.theme;
  }

  changeTheme = () => {
    const theme = THEMES[(THEMES.indexOf(this.state.theme) + 1) % THEMES.length];
    localStorage.setItem("theme", theme);
    this.setState({ theme }, () => this.dress());
  };

  clear = () => this.attempt(async () => {
    await server.clear();
    for (const row of this.rows.values()) if (!row.pinned && row.state !== "running") this.rows.delete(row.id);
    const kept = this.rows.has(this.state.selected);
    this.setState(kept ? {} : { selected: null, view: null, open: false });
  });

  render(_, { about, selected, open, view, format, error, connection, text, problems, pinned, message, theme, curl, help }) {
    if (error) return html`<main class="failure"><h1>Toolwire inspector</h1><p role="alert">${error}</p></main>`;
    if (!about) return html`<main class="failure"><h1>Toolwire inspector</h1><p role="status">Loading…</p></main>`;
    const rows = this.shown();
    const names = { live: "live", file: about.source, connecting: "connecting", offline: "not connected: trying again" };
    const ready = view && view.row.id === selected;
    const start = about.source ? "The file contains no request." : `No request has arrived. Point a client to ${location.origin}, or to ${location.origin}/v1 for OpenAI's SDKs.`;
    const empty = this.rows.size ? "No request matches." : start;
    return html`
      <div class=${`app${open ? " open" : ""}`}>
        <header class="top">
          <h1>Toolwire <span>inspector</span></h1>
          <span class="connection ${connection}">${names[connection]}</span>
          ${!about.content && html`<span class="tag">content is not kept</span>`}
          <div role="search" class="search">
            <label class="hidden" for="search">Search requests</label>
            <input id="search" type="search" placeholder="Search text, tool, model, session…   /" value=${text} onInput=${this.typed} />
            <label class="check"><input type="checkbox" checked=${problems} onChange=${(event) => this.setState({ problems: event.target.checked })} /> with problems</label>
            ${!about.source && html`<label class="check"><input type="checkbox" checked=${pinned} onChange=${(event) => this.setState({ pinned: event.target.checked })} /> pinned</label>`}
          </div>
          <span class="total" aria-live="polite">${rows.length === this.rows.size ? plural(rows.length, "request") : `${count(rows.length)} of ${plural(this.rows.size, "request")}`}</span>
          <div class="tools" role="group" aria-label="Page">
            <a class="button" href=${server.exportAddress()} download>Export</a>
            ${!about.source && html`<button onClick=${this.clear}>Clear</button>`}
            <button onClick=${this.changeTheme} aria-label=${`Colours: ${theme}`}>${{ auto: "◑", light: "☀", dark: "☾" }[theme]}</button>
            <button onClick=${() => this.setState({ help: true })} aria-label="Keys">?</button>
          </div>
        </header>
        <main class="body">
        <nav class="side" aria-label="Requests">
          <${ExchangeList} rows=${rows} selected=${selected} empty=${empty} onSelect=${(id) => this.select(id)} onOpen=${this.openPage} />
        </nav>
        <div class="page">
          ${ready ? html`<${ExchangePage} key=${selected} view=${view} about=${about} actions=${this.actions} format=${format} />`
            : selected ? html`<p class="quiet reading">Reading…</p>` : html`<${Welcome} source=${about.source} />`}
        </div>
        </main>
        <div class="toast" role="status">${message}</div>
        ${curl && html`<${Dialog} title="Copy as curl" close=${() => this.setState({ curl: "" })}><pre tabindex="0" aria-label="Command">${curl}</pre><//>`}
        ${help && html`<${Dialog} title="Keys" close=${() => this.setState({ help: false })}><${Keys} /><//>`}
      </div>`;
  }
}

const Welcome = ({ source }) => html`
  <div class="welcome">
    <h2>Choose a request</h2>
    <p>${source ? "The requests of the file are in the list." : "Each request that the gateway answers appears in the list as it arrives."}${" "}
      A request shows its raw answer beside what was read from it, what a translation lost, and where the prompt changed.</p>
    <p><kbd>j</kbd> and <kbd>k</kbd> move through the list, <kbd>/</kbd> searches, <kbd>?</kbd> shows all keys.</p>
  </div>`;

const Keys = () => html`
  <dl class="keys">
    ${[["j, ↓", "next request"], ["k, ↑", "previous request"], ["Enter", "go to the request"], ["Esc", "back to the list"],
      ["/", "search"], ["p", "pin the request"], ["←, →", "one step of the answer, within its steps"],
      ["Home, End", "first and last"], ["?", "these keys"]].map(([key, what]) => html`<div><dt><kbd>${key}</kbd></dt><dd>${what}</dd></div>`)}
  </dl>`;

class Dialog extends Component {
  box = createRef();

  componentDidMount() {
    this.box.current.showModal();
  }

  render({ title, close, children }) {
    return html`<dialog ref=${this.box} onClose=${close} aria-labelledby="dialog-title">
      <h2 id="dialog-title">${title}</h2>${children}<form method="dialog"><button autofocus>Close</button></form></dialog>`;
  }
}

render(html`<${App} />`, document.getElementById("app"));
