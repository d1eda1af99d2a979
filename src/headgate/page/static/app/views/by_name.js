// Opens by name what no list has: for a role that may not list everything, and over an agent, which lists no topics.

import { html } from "../../vendor/preact.js";
import { isAgent } from "../server.js";
import { link } from "../state.js";

// "tenant", "tenant/namespace", "tenant/namespace/topic" or a topic's full name as a place of the page.
export function placeOf(text) {
  const name = text.trim();
  if (name.includes("://")) return ["topic", name];
  const parts = name.split("/");
  return parts.length < 3 ? ["browse", ...parts] : ["topic", `persistent://${name}`];
}

export function ByName({ error }) {
  if (!isAgent && error?.status !== 401 && error?.status !== 403) return null;
  const go = (event) => {
    event.preventDefault();
    location.hash = link(placeOf(new FormData(event.target).get("name")));
  };
  return html`<form class=${isAgent ? "filters" : "card filters"} onSubmit=${go}>
    <label>${isAgent ? "Open a topic" : "Open what your role may see"} <input name="name" required placeholder="tenant/namespace/topic"
      pattern=${isAgent ? ".+/.+/.+" : null} title="tenant/namespace/topic" /></label>
    <button>Open</button></form>`;
}
