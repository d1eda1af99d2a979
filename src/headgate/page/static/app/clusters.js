// The clusters that an agent watches, and the one that the page shows: ?cluster=NAME of its address.

import { html, useEffect } from "../vendor/preact.js";
import { ROOT, chosenCluster } from "./api.js";
import { duration, quoted } from "./format.js";
import { isAgent } from "./server.js";
import { intervalOf, link, readRoute, useAnswer } from "./state.js";

const EVERY_S = 30;

// The address of the page for another cluster.
export function clusterAddress(name, hash = location.hash) {
  const search = new URLSearchParams(location.search);
  search.set("cluster", name);
  return `?${search}${hash}`;
}

// Shows another cluster without loading the page anew: that would forget the credentials.
export function showCluster(name, hash = location.hash, { replace = false } = {}) {
  history[replace ? "replaceState" : "pushState"](null, "", clusterAddress(name, hash));
  dispatchEvent(new PopStateEvent("popstate"));
}

// Follows a link to another cluster, unless the reader wants it in another tab.
export function followCluster(name, hash) {
  return (event) => {
    if (event.button || event.ctrlKey || event.metaKey || event.shiftKey) return;
    event.preventDefault();
    showCluster(name, hash);
  };
}

// {names, isKnown, answer}: ``isKnown`` is false until requests may name a cluster.
export function useClusters(mayAsk, query) {
  const isPaused = intervalOf(query) === 0;
  const answer = useAnswer(isAgent && mayAsk ? "admin/v2/headgate/clusters" : "", isPaused ? 0 : EVERY_S);
  const names = (answer.value ?? []).map(({ cluster }) => cluster);
  const isOpen = names.length > 1 && !chosenCluster();
  useEffect(() => {
    // The address says which cluster is shown, so that a link shows somebody else the same.
    if (isOpen) showCluster(names[0], location.hash, { replace: true });
  }, [isOpen]);
  return { names, isKnown: !isAgent || (answer.value != null && !isOpen), answer };
}

// Surveys are a minute apart: without a look for three of them something is wrong.
const LATE_S = 180;

// Why the figures of a cluster are old; empty if they are not.
export function lateness({ cluster, reachable, reachableSinceS, reason, stalled, lastLookAgeS, lastSurveyAgeS }) {
  const time = (seconds) => duration(Math.round(seconds));
  if (stalled) return `The agent's watch of ${cluster} hangs: restart the agent`;
  if (reachable === false) return `${cluster} has not answered for ${time(reachableSinceS)}: ${reason}`;
  // A cluster without topics has surveys alone.
  const seenS = Math.min(lastLookAgeS, lastSurveyAgeS ?? Infinity);
  return seenS > LATE_S ? `No look at a topic of ${cluster} for ${time(seenS)}` : "";
}

// The lateness of the cluster that is shown.
export function latenessNow({ answer }) {
  const all = answer.value ?? [];
  const shown = all.find(({ cluster }) => cluster === (chosenCluster() ?? all[0]?.cluster));
  return shown ? lateness(shown) : "";
}

// In the head of the page, of an agent with several clusters.
export function ClusterChoice({ clusters }) {
  const { names, answer } = clusters;
  const chosen = chosenCluster();
  if (!chosen || (names.length < 2 && names.includes(chosen))) return null;
  const choose = ({ target }) => {
    // A topic of one cluster is not one of the other.
    const { parts } = readRoute();
    showCluster(target.value, ["topic", "subscription"].includes(parts[0]) ? link(["now"]) : location.hash);
  };
  const away = new Set((answer.value ?? []).filter(({ reachable }) => reachable === false).map(({ cluster }) => cluster));
  const shown = names.includes(chosen) ? names : [chosen, ...names];
  return html`<label class="cluster">Cluster <select value=${chosen} onChange=${choose}>
    ${shown.map((name) => html`<option value=${name}>${name}${away.has(name) ? " (not reachable)" : names.includes(name) ? "" : " (not watched)"}</option>`)}</select></label>`;
}

// The names that a cluster may have. Another one of the address stands in no command.
const NAME = /^[-\w.]{1,100}$/;

// A command that asks the server of this page.
export function commandHere(command) {
  if (!isAgent || !command) return command;
  const cluster = chosenCluster();
  const option = cluster && NAME.test(cluster) ? ` --cluster ${cluster}` : "";
  return `${command} --admin-url ${quoted(ROOT.href.replace(/\/$/, ""))}${option}`;
}
