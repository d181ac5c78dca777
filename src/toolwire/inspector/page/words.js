// Values in words: names of APIs, times, counts and sizes, as they are shown everywhere on the page.

const APIS = {
  openai_chat: "Chat",
  openai_compatible: "Chat",
  openai_responses: "Responses",
  anthropic_messages: "Messages",
  gemini: "Gemini",
  ollama: "Ollama",
  text: "Text",
  agent: "Agent",
};

export const apiName = (name) => APIS[name] ?? name;

export const count = (number) => (number == null ? "–" : number.toLocaleString("en"));

export const plural = (number, word) => `${count(number)} ${word}${number === 1 ? "" : "s"}`;

/** A time in milliseconds, with about three digits. */
export function duration(ms) {
  if (ms == null) return "–";
  if (ms < 1) return `${ms.toFixed(2)} ms`;
  if (ms < 1000) return `${Math.round(ms)} ms`;
  if (ms < 60_000) return `${(ms / 1000).toFixed(2)} s`;
  return `${Math.floor(ms / 60_000)} min ${Math.round((ms % 60_000) / 1000)} s`;
}

/** A time of day, from seconds since 1970. */
export function clock(seconds) {
  if (!seconds) return "";
  return new Date(seconds * 1000).toLocaleTimeString("en-GB", { hour12: false });
}

export function money(amount) {
  if (amount == null) return "–";
  return amount === 0 ? "$0" : `$${amount < 0.01 ? amount.toPrecision(2) : amount.toFixed(3)}`;
}

export function size(characters) {
  return characters < 10_000 ? `${count(characters)} chars` : `${count(Math.round(characters / 1000))}k chars`;
}

const STATES = {
  running: ["◌", "running"],
  done: ["●", "done"],
  failed: ["✕", "failed"],
  left: ["◐", "client left"],
};

/** A sign and a word for the state of a request: its answer may be complete and still have problems. */
export function state(row) {
  const problems = Object.values(row.problems).reduce((sum, number) => sum + number, 0);
  if (row.state === "done" && (problems || row.incomplete)) return ["▲", "done, with problems", "warned"];
  return [...STATES[row.state], row.state];
}

export const problemCount = (row) => Object.values(row.problems).reduce((sum, number) => sum + number, 0);
