// What changed in the last hour: marks above the backlog and its causes, and below them a list in words.

import { html } from "../vendor/preact.js";
import { LineChart } from "./chart.js";
import { instant } from "./format.js";
import { Table } from "./parts.js";

const HOUR_MS = 3_600_000;
const LEVELS = { subscription: "this subscription", topic: "the topic", namespace: "the namespace", broker: "the broker" };

export const clock = (text) => instant(text).slice(11);

// The change that came before the backlog grew: the one that the sentence of ``growth`` names.
export function isPointedOut(change, growth) {
  return growth?.changedAt === change.at && growth.kind === change.kind && growth.sentence.includes(change.sentence);
}

// A change is noticed within seconds: one that came after the last instant without backlog was not before it.
function placeText(change, growth) {
  const isBefore = Math.floor(Number(new Date(change.at)) / 1000) < Math.floor(Number(new Date(growth.growingSince)) / 1000);
  return isBefore ? "before the backlog began" : "as the backlog began";
}

export function Growth({ report }) {
  const growth = report?.beforeGrowth;
  return growth && html`<p class="notice calm growth">${growth.sentence}.</p>`;
}

function columns(growth) {
  return [
    { head: "At (UTC)", cell: (change) => clock(change.at) },
    {
      head: "What changed",
      cell: (change) => html`${change.sentence}${isPointedOut(change, growth) && html` <strong class="before">${placeText(change, growth)}</strong>`}`,
    },
    { head: "Concerns", cell: (change) => (change.level === "subscription" ? change.subscription : LEVELS[change.level]) },
  ];
}

// The backlog and the causes of the hour up to ``at``, with marks of what changed.
function Hour({ at, strip, changes, growth, inferred, until }) {
  const { stepS = 60, backlog, verdicts } = strip?.timeline ?? {};
  // The one that is pointed out is drawn last, above others of the same moment.
  const marks = [...changes].sort((a, b) => isPointedOut(a, growth) - isPointedOut(b, growth)).map((change) => ({
    at: change.at, name: `${clock(change.at)} ${change.sentence}`, style: isPointedOut(change, growth) ? "before" : "",
  }));
  return html`<${LineChart} start=${Number(new Date(at)) - HOUR_MS} stepS=${stepS} causes=${verdicts} many=${60} marks=${marks}
    lines=${backlog ? [{ name: `Backlog of ${strip.subscription}`, values: backlog }] : []} inferred=${inferred} shadeTo=${until} atEnd />`;
}

// ``strip`` is the subscription whose backlog is shown, ``only`` one whose changes alone are shown.
export function Changed({ report, strip, only, inferred, until }) {
  const found = report.changes;
  const growth = strip?.beforeGrowth;
  const shown = (found?.changes ?? []).filter(({ subscription }) => !only || !subscription || subscription === only);
  const isShort = found && Number(new Date(report.at)) - Number(new Date(found.completeSince)) < 0.98 * HOUR_MS;
  return html`<h2>What changed in the last hour</h2>
    <${Hour} at=${report.at} strip=${strip} changes=${shown} growth=${growth} inferred=${inferred} until=${until} />
    ${found
      ? html`<${Table} columns=${columns(growth)} rows=${[...shown].reverse()} empty="No policy, client or topic changed."
          keyOf=${(change) => `${change.at} ${change.sentence}`} />
        ${isShort && html`<p class="muted">Changes before ${clock(found.completeSince)} UTC are not known.</p>`}`
      : html`<p class="muted">Not known.</p>`}
    ${found && inferred && html`<p class="muted">This is what differs between two looks at the cluster. Who changed it, and what came and went between
      the two, is not known; nor are producers.</p>`}`;
}
