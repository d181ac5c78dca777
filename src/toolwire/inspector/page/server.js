// The inspector's JSON: each function asks the server once.

const ROOT = "/inspector/api";

async function ask(path, options) {
  const response = await fetch(ROOT + path, options);
  const body = await response.json();
  if (!response.ok) throw new Error(body.error ?? `the server answered ${response.status}`);
  return body;
}

const post = (path, value = {}) =>
  ask(path, { method: "POST", headers: { "content-type": "application/json" }, body: JSON.stringify(value) });

const of = (id) => `/exchanges/${encodeURIComponent(id)}`;

export const about = () => ask("/about");
export const rows = (before) => ask(`/rows${before ? `?before=${before}` : ""}`);
export const search = (text) => ask(`/search?text=${encodeURIComponent(text)}`);
export const view = (id, start = 0) => ask(`${of(id)}?start=${start}`);
export const readAs = (id, format) => ask(`${of(id)}?format=${encodeURIComponent(format)}`);
export const pin = (id, pinned) => post(`${of(id)}/pin`, { pinned });
export const resend = (id, model) => post(`${of(id)}/resend`, { model });
export const clear = () => post("/clear");
export const rowAddress = (id) => `${ROOT}${of(id)}/row`;
export const exportAddress = (id) => `${ROOT}/export${id ? `?id=${encodeURIComponent(id)}` : ""}`;

export async function curl(id) {
  const response = await fetch(`${ROOT}${of(id)}/curl`);
  if (!response.ok) throw new Error("the command cannot be written: the request is not kept any more");
  return response.text();
}

/** Report changed rows until the page is closed; the browser connects again by itself. */
export function follow(version, onRows, onState) {
  const feed = new EventSource(`${ROOT}/feed?since=${version}`);
  feed.onmessage = (event) => onRows(JSON.parse(event.data));
  feed.onopen = () => onState("live");
  feed.onerror = () => onState("offline");
}
