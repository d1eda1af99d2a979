// The frame of the page: head, menu, how often to ask, and the view that the URL names.

import { html, render, useEffect, useRef } from "../vendor/preact.js";
import { learnAccess, useAccess } from "./access.js";
import { Reader, SignIn } from "./sign_in.js";
import { INTERVALS_S, INTERVAL_S, intervalOf, link, setQuery, useRoute } from "./state.js";
import { readServer } from "./server.js";
import { viewsOf } from "./views/of_server.js";

const server = await readServer();
const VIEWS = await viewsOf(server);

function Menu({ current }) {
  return html`<nav aria-label="Views"><ul>${VIEWS.filter(({ name }) => name).map(({ path, name }) => html`
    <li><a href=${link([path])} aria-current=${path === current ? "page" : null}>${name}</a></li>`)}</ul></nav>`;
}

function Pace({ query }) {
  const isPaused = query.get("paused") === "1";
  return html`<div class="pace">
    <label>Every <select value=${String(intervalOf(query) || INTERVAL_S)} onChange=${(event) => setQuery("every", event.target.value)}>
      ${INTERVALS_S.map((each) => html`<option value=${each}>${each} s</option>`)}</select></label>
    <button type="button" aria-pressed=${isPaused} onClick=${() => setQuery("paused", isPaused ? "" : "1")}>
      ${isPaused ? "Go on" : "Pause"}</button>
  </div>`;
}

// Scripts may not follow the link "Skip to the content" as it stands: the URL's hash names the view.
document.querySelector(".skip").addEventListener("click", (event) => {
  event.preventDefault();
  focusContent();
});

function focusContent() {
  document.getElementById("content").focus();
}

function Page() {
  const { parts, query } = useRoute();
  const access = useAccess();
  const current = VIEWS.find(({ path }) => path === parts[0]) ?? VIEWS[0];
  useEffect(() => {
    const about = parts.length > 1 ? parts.slice(1).join(" ") : current.name ?? "";
    document.title = about ? `${about} · Headgate` : "Headgate";
  }, [parts.join("\n")]);
  const place = parts.join("\n") || current.path;
  const shown = useRef(place);
  useEffect(() => {
    if (shown.current === place) return;
    // The link that was followed may be gone: a screen reader and Tab go on from the new view.
    shown.current = place;
    scrollTo(0, 0);
    focusContent();
  }, [place]);
  // Another reader sees other data: the view begins anew.
  const key = `${access.role}\n${place}`;
  return html`<header><a class="brand" href=${link([VIEWS[0].path])}><img src="icon.svg" alt="" width="24" height="24" />Headgate</a>
      <${Menu} current=${current.path} />${server.live && html`<${Pace} query=${query} />`}<${Reader} /></header>
    <main id="content" tabindex="-1">${access.state === "out"
      ? html`<${SignIn} access=${access} />`
      : access.state !== "asking" && html`<${current.view} key=${key} parts=${parts} query=${query} everyS=${intervalOf(query)} />`}</main>`;
}

render(html`<${Page} />`, document.getElementById("app"));
learnAccess().catch(() => {});
