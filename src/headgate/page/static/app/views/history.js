// Backlogs of the past, from begin to end, the largest first.

import { html } from "../../vendor/preact.js";
import { CAUSES } from "../causes.js";
import { count, duration, plural, shortTopic, topicParts, withoutCause } from "../format.js";
import { Elsewhere, Figure, Figures, Legend, ShareBar, Table, Verdict } from "../parts.js";
import { Controls, DAY, HOUR, Read, between, tableCommand, time, usePast } from "../past.js";
import { link } from "../state.js";

const LENGTHS = [HOUR, 6, DAY, 7 * DAY, 31 * DAY];

// The page of one episode: its subscription and an instant in it.
export function episodeLink(episode) {
  return link(["episode", episode.topic, episode.subscription], { at: episode.start, cluster: episode.cluster });
}

export function blameParts(episode) {
  const known = Object.entries(episode.blameS);
  const total = known.reduce((sum, [, seconds]) => sum + seconds, 0);
  return known.map(([cause, seconds]) => ({ cause, share: total ? seconds / total : 0 }));
}

export function EndText({ episode }) {
  if (episode.isOpen) return html`<strong class="alarm">still open</strong>`;
  return html`${time(episode.end)}<small class="muted">${{ skipped: "skipped by a client", unseen: "telemetry ends" }[episode.ending] ?? ""}</small>`;
}

const COLUMNS = [
  {
    head: "Topic and subscription",
    cell: (each) => html`<a class="name" href=${episodeLink(each)}>${shortTopic(each.topic)}</a>
      <span class="name">${each.subscription}</span>`,
  },
  {
    head: "Cause",
    cell: (each) => html`<${Verdict} cause=${each.cause ?? "unknown"} inferred=${each.evidence === "inferred"} />
      <${ShareBar} parts=${blameParts(each)} />`,
  },
  {
    head: "Began",
    cell: (each) => html`${time(each.start)}<small class="muted">${each.continuesBefore ? "or earlier" : ""}</small>`,
  },
  { head: "Over", cell: (each) => html`<${EndText} episode=${each} />` },
  { head: "Lasted", isNumber: true, cell: (each) => between(each.start, each.end) || duration(60 * each.minutes) },
  { head: "Largest", isNumber: true, cell: (each) => count(each.peakBacklogMessages) },
  { head: "Oldest", isNumber: true, cell: (each) => duration(each.oldestAgeMaxS) },
  {
    head: "Lost",
    isNumber: true,
    cell: (each) => (each.evicted || each.expired ? html`<strong class="alarm">${count((each.evicted ?? 0) + (each.expired ?? 0))}</strong>` : "0"),
  },
];

function Totals({ shown }) {
  const by = new Map();
  for (const { cause } of shown) by.set(cause, (by.get(cause) ?? 0) + 1);
  return html`<${Figures}>
    <${Figure} name="Episodes shown" value=${count(shown.length)} />
    <${Figure} name="Still open" value=${count(shown.filter(({ isOpen }) => isOpen).length)} />
    ${CAUSES.filter(([cause]) => by.get(cause)).map(([cause]) => html`
      <${Figure} key=${cause} name=${html`<${Verdict} cause=${cause} />`} value=${count(by.get(cause))} />`)}
  <//>`;
}

export function Episodes({ query }) {
  const answer = usePast("/episodes", query);
  const shown = answer.value?.episodes ?? [];
  const tenants = [...new Set(shown.map(({ topic }) => topicParts(topic).tenant))].sort();
  return html`<section>
    <div class="title"><h1>Episodes</h1><${Read} answer=${answer} /></div>
    <p class="muted">Each backlog from begin to end, with its cause.</p>
    <${Controls} query=${query} tables=${answer.tables} lengths=${LENGTHS} filters=${["verdict", "tenant", "text"]} tenants=${tenants} />
    ${answer.value && html`
      <${Totals} shown=${shown} />
      <${Table} columns=${COLUMNS} rows=${shown} keyOf=${(each) => `${each.cluster} ${each.topic} ${each.subscription} ${each.start}`}
        detail=${(each) => withoutCause(each.sentence ?? "")} empty="No backlog of this range matches." />
      ${answer.value.more > 0 && html`<p class="muted">${plural(answer.value.more, "smaller episode")} more.</p>`}
      ${answer.value.isCut && html`<p class="notice">The range has more than fits in memory: only its newest part is shown.
        Choose a shorter range or a tenant.</p>`}`}
    <${Legend} />
    <${Elsewhere} path=${answer.path} command=${tableCommand("backlog_episodes")} />
  </section>`;
}
