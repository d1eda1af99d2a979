// What changed in the last hour: marks on the time axis of the causes, and below them a list in words.

import { html } from "../vendor/preact.js";
import { instant, plural } from "./format.js";
import { Strip, Table } from "./parts.js";

const HOUR_MS = 3_600_000;
const WIDTH = 720;
const HEIGHT = 18;
const TIMES = 6;
const LEVELS = { subscription: "this subscription", topic: "the topic", namespace: "the namespace", broker: "the broker" };

export const clock = (text) => instant(text).slice(11);

// The change that came before the backlog grew: the one that the sentence of ``growth`` names.
export function isPointedOut(change, growth) {
  return growth?.changedAt === change.at && growth.kind === change.kind && growth.sentence.includes(change.sentence);
}

export function Growth({ report }) {
  const growth = report?.beforeGrowth;
  return growth && html`<p class="notice calm growth">${growth.sentence}.</p>`;
}

// ``until`` is the end of the hour that a link is about, if it has one.
function Marks({ changes, growth, endMs, until }) {
  const x = (at) => (WIDTH * (Number(new Date(at)) - endMs + HOUR_MS)) / HOUR_MS;
  const label = `${plural(changes.length, "change")} in the hour up to ${clock(new Date(endMs).toISOString())} UTC`;
  const inHour = (at) => x(at) >= 0 && x(at) <= WIDTH;
  // The one that is pointed out is drawn last, above others of the same moment.
  const onTop = changes.filter(({ at }) => inHour(at)).sort((a, b) => isPointedOut(a, growth) - isPointedOut(b, growth));
  return html`<svg class="marks" role="img" viewBox="0 0 ${WIDTH} ${HEIGHT}" width=${WIDTH} height=${HEIGHT}
    preserveAspectRatio="none" aria-label=${label}>
    ${until && inHour(until) && html`<rect class="linked" x="0" y="0" height=${HEIGHT} width=${x(until).toFixed(1)}><title>the time of the link</title></rect>`}
    ${onTop.map((change) => {
      const at = x(change.at);
      const half = isPointedOut(change, growth) ? 7 : 5;
      return html`<path class=${isPointedOut(change, growth) ? "before" : ""} d=${`M${(at - half).toFixed(1)} ${HEIGHT - 2 * half}h${2 * half}L${at.toFixed(1)} ${HEIGHT}z`}>
        <title>${`${clock(change.at)}: ${change.sentence}`}</title></path>`;
    })}
  </svg>`;
}

function Axis({ endMs }) {
  const at = Array.from({ length: TIMES + 1 }, (_, each) => endMs - (1 - each / TIMES) * HOUR_MS);
  return html`<div class="axis" aria-hidden="true">${at.map((ms) => html`<span>${clock(new Date(ms).toISOString()).slice(0, 5)}</span>`)}</div>`;
}

function columns(growth) {
  return [
    { head: "At (UTC)", cell: (change) => clock(change.at) },
    {
      head: "What changed",
      cell: (change) => html`${change.sentence}${isPointedOut(change, growth) && html` <strong class="before">before the backlog began</strong>`}`,
    },
    { head: "Concerns", cell: (change) => (change.level === "subscription" ? change.subscription : LEVELS[change.level]) },
  ];
}

// ``strip`` is the subscription whose causes are shown below the marks, ``only`` one whose changes alone are shown.
export function Changed({ report, strip, only, inferred, until }) {
  const found = report.changes;
  const endMs = Number(new Date(report.at));
  const growth = strip?.beforeGrowth;
  const shown = (found?.changes ?? []).filter(({ subscription }) => !only || !subscription || subscription === only);
  const isShort = found && endMs - Number(new Date(found.completeSince)) < 0.98 * HOUR_MS;
  return html`<h2>What changed in the last hour</h2>
    <div class="hour">
      ${found && html`<${Marks} changes=${shown} growth=${growth} endMs=${endMs} until=${until} />`}
      ${strip && html`<${Strip} timeline=${strip.timeline} inferred=${inferred} width=${WIDTH} height="18"
        label=${`Minutes of the last hour of ${strip.subscription} by cause`} />`}
      <${Axis} endMs=${endMs} />
    </div>
    ${strip && !only && html`<p class="muted">The strip is of ${strip.subscription}, the largest backlog.</p>`}
    ${found
      ? html`<${Table} columns=${columns(growth)} rows=${[...shown].reverse()} empty="No policy, client or topic changed."
          keyOf=${(change) => `${change.at} ${change.sentence}`} />
        ${isShort && html`<p class="muted">Changes before ${clock(found.completeSince)} UTC are not known.</p>`}`
      : html`<p class="muted">Not known.</p>`}
    ${found && inferred && html`<p class="muted">This is what differs between two looks at the cluster. Who changed it, and what came and went between
      the two, is not known; nor are producers.</p>`}`;
}
