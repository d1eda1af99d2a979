// One incident to hand on: all that is known of a topic as one file, and a link to the same view.

import { html, useState } from "../vendor/preact.js";
import { get, getText } from "./api.js";
import { clock } from "./changes.js";
import { shortTopic, topicPath } from "./format.js";
import { CopyButton } from "./parts.js";
import { link, readRoute, setQuery } from "./state.js";

const HOUR_MS = 3_600_000;

// The view with the hour that it shows now: an end that the address has already stays.
function linkOf(report) {
  const { parts, query } = readRoute();
  const until = query.get("until") ?? report.at;
  return new URL(link(parts, { ...Object.fromEntries(query), paused: "", until, hours: 1 }), document.baseURI).href;
}

const orNull = (answer) => answer.catch(() => null);

export function statsPath(report) {
  const kind = report.partitions ? "partitioned-stats?perPartition=false" : "stats";
  return `admin/v2/${topicPath(report.topic)}/${kind}`;
}

// What a role may not read is null, so that a colleague sees that it is missing.
export async function incidentOf(report) {
  const [stats, identity, version] = await Promise.all([
    orNull(get(statsPath(report))), orNull(get("admin/v2/headgate/identity")), orNull(getText("admin/v2/brokers/version")),
  ]);
  return {
    format: "headgate-incident", formatVersion: 1, exportedAt: new Date().toISOString(), link: linkOf(report),
    server: { ...identity, version }, report, stats,
  };
}

function save(incident) {
  const url = URL.createObjectURL(new Blob([JSON.stringify(incident, null, 2)], { type: "application/json" }));
  const name = `${shortTopic(incident.report.topic)}-${incident.report.at.slice(0, 19)}`.replace(/[^\w.-]+/g, "-");
  const anchor = document.createElement("a");
  anchor.href = url;
  anchor.download = `incident-${name}.json`;
  anchor.click();
  setTimeout(() => URL.revokeObjectURL(url), 60_000);
}

export function Incident({ report }) {
  const [isBusy, setBusy] = useState(false);
  const act = async () => {
    setBusy(true);
    save(await incidentOf(report));
    setBusy(false);
  };
  return html`<div class="incident"><span class="muted">Share</span>
    <button type="button" onClick=${act} disabled=${isBusy} title="The report with its timeline and changes, the statistics and the version">Save this incident as JSON</button>
    <a href=${linkOf(report)}>Link to this hour</a> <${CopyButton} text=${linkOf(report)} label="the link to this hour" /></div>`;
}

// Of what time the link is that was followed; the page itself shows the present.
export function LinkedTime({ report, until }) {
  if (!until || Number.isNaN(Number(new Date(until)))) return null;
  const end = new Date(until).toISOString();
  const begin = new Date(Number(new Date(until)) - HOUR_MS).toISOString();
  const range = `${begin.slice(0, 10)} ${clock(begin)} to ${clock(end)} UTC`;
  const isGone = Number(new Date(report.at)) - Number(new Date(until)) >= HOUR_MS;
  return html`<p class="notice calm">This link is about ${range}. ${isGone
    ? html`A broker knows the last hour alone: the figures below are of now. The page of <code>headgate pipeline serve</code> shows that time at the same
      address behind its own host: <code>${location.hash}</code>`
    : "The figures are of now; the marks of the last hour shade the time of the link."}
    ${" "}<button type="button" class="small" onClick=${() => setQuery("until", "")}>Show the present</button></p>`;
}
