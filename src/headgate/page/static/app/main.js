// The frame of the page: head, menu, how often to ask, and the view that the URL names.

import { html, render, useEffect, useRef } from "../vendor/preact.js";
import { learnAccess, useAccess } from "./access.js";
import { ClusterChoice, latenessNow, useClusters } from "./clusters.js";
import { Freshness } from "./parts.js";
import { server } from "./server.js";
import { Reader, SignIn } from "./sign_in.js";
import { INTERVALS_S, INTERVAL_S, intervalOf, link, setQuery, useRoute } from "./state.js";
import { viewsOf } from "./views/index.js";

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

function Notices({ late, asked, shown }) {
  return html`${late && html`<p class="notice" role="alert" aria-live="off">${late}. The figures are those of the last looks.</p>`}
    ${asked && html`<p class="notice calm">This server cannot fill the view “${asked}”. This is ${shown}.</p>`}`;
}

function Content({ access, clusters, view: View, parts, query }) {
  if (access.state === "out") return html`<${SignIn} access=${access} />`;
  if (access.state === "asking") return null;
  // Before the clusters are known a request could not name one.
  if (!clusters.isKnown) return html`<${Freshness} answer=${clusters.answer} everyS=${1} />`;
  return html`<${View} parts=${parts} query=${query} everyS=${intervalOf(query)} />`;
}

function Page() {
  const { parts, query, cluster } = useRoute();
  const access = useAccess();
  const clusters = useClusters(access.state !== "asking" && access.state !== "out", query);
  const known = VIEWS.find(({ path }) => path === parts[0]);
  const current = known ?? VIEWS[0];
  useEffect(() => {
    const about = parts.length > 1 ? parts.slice(1).join(" ") : current.name ?? "";
    document.title = [about, cluster, "Headgate"].filter(Boolean).join(" · ");
  }, [parts.join("\n"), cluster]);
  const place = parts.join("\n") || current.path;
  const shown = useRef(place);
  useEffect(() => {
    if (shown.current === place) return;
    // The link that was followed may be gone: a screen reader and Tab go on from the new view.
    shown.current = place;
    scrollTo(0, 0);
    focusContent();
  }, [place]);
  // Another reader or another cluster sees other data: the view begins anew.
  const key = `${access.role}\n${cluster}\n${place}`;
  const late = current.path === "cluster" ? "" : latenessNow(clusters);
  return html`<header><a class="brand" href=${link([VIEWS[0].path])}><img src="icon.svg" alt="" width="24" height="24" />Headgate</a>
      <${Menu} current=${current.path} /><${ClusterChoice} clusters=${clusters} />${server.live && html`<${Pace} query=${query} />`}<${Reader} /></header>
    <main id="content" tabindex="-1" class=${late ? "is-late" : ""}>
      <${Notices} late=${late} asked=${known ? "" : parts[0]} shown=${current.name} />
      <${Content} access=${access} clusters=${clusters} view=${current.view} key=${key} parts=${parts} query=${query} /></main>`;
}

render(html`<${Page} />`, document.getElementById("app"));
learnAccess().catch(() => {});
