// Preact with htm: markup in template strings, without a build step. All text becomes text nodes.

import { Component, createRef, Fragment, h, render } from "./preact.mjs";
import htm from "./htm.mjs";

export const html = htm.bind(h);
export { Component, createRef, Fragment, render };
