// Which cause held each backlog at which minute: all subscriptions of a range, and one of them.

import { html } from "../../vendor/preact.js";
import { count, duration, percent, plural, quoted, shortTopic, topicParts, withoutCause } from "../format.js";
import { Elsewhere, Legend, Sparkline, Strip, Table, Verdict } from "../parts.js";
import { Controls, DAY, HOUR, Read, pastPath, tableCommand, time, usePast } from "../past.js";
import { link, useAnswer } from "../state.js";
import { LineChart } from "../chart.js";

const LENGTHS = [HOUR, 3, 6, 12, DAY];

function stepText(timeline) {
  return `Steps of ${duration(timeline.stepS)} from ${time(timeline.start)} by cause`;
}

function timelineLink(each, query) {
  const kept = { until: query.get("until"), hours: query.get("hours"), cluster: each.cluster };
  return link(["timeline", each.topic, each.subscription], kept);
}

function columns(query) {
  return [
    {
      head: "Topic and subscription",
      cell: (each) => html`<a class="name" href=${timelineLink(each, query)}>${shortTopic(each.topic)}</a>
        <span class="name">${each.subscription}</span>`,
    },
    {
      head: "Causes and backlog",
      cell: (each) => html`<${Strip} timeline=${each.timeline} inferred=${each.isInferred} width="480" label=${stepText(each.timeline)} />
        <${Sparkline} values=${each.timeline.backlog} label="Backlog" width="480" height="40" />`,
    },
    {
      head: "At its largest",
      cell: (each) => html`<${Verdict} cause=${each.peak.verdict} inferred=${each.peak.evidence === "inferred"} />
        <small class="muted">${time(each.peak.minute)}, confidence ${percent(each.peak.confidence)}</small>`,
    },
    { head: "Largest", isNumber: true, cell: (each) => count(each.peak.backlogMessages) },
    { head: "At the end", isNumber: true, cell: (each) => count(each.last.backlogMessages) },
    { head: "Oldest", isNumber: true, cell: (each) => duration(each.peak.oldestAgeMaxS) },
  ];
}

export function Timelines({ query }) {
  const answer = usePast("/timelines", query);
  const shown = answer.value?.subscriptions ?? [];
  const tenants = [...new Set(shown.map(({ topic }) => topicParts(topic).tenant))].sort();
  return html`<section>
    <div class="title"><h1>Timelines</h1><${Read} answer=${answer} /></div>
    <p class="muted">The subscriptions with the largest backlogs, by what held them when.</p>
    <${Controls} query=${query} tables=${answer.tables} lengths=${LENGTHS} filters=${["verdict", "tenant", "text"]} tenants=${tenants} />
    ${answer.value && html`
      <${Table} columns=${columns(query)} rows=${shown} keyOf=${(each) => `${each.cluster} ${each.topic} ${each.subscription} ${each.incarnation}`}
        detail=${(each) => withoutCause(each.peak.sentence ?? "")} empty="No subscription of this range had a backlog that matches." />
      ${answer.value.more > 0 && html`<p class="muted">${plural(answer.value.more, "smaller backlog")} more.</p>`}`}
    <${Legend} />
    <${Elsewhere} path=${answer.path} command=${tableCommand("attribution")} />
  </section>`;
}

// A topic's link of the page of a broker: the subscriptions of that topic.
export function TopicTimelines({ parts, query }) {
  const narrowed = new URLSearchParams(query);
  if (!narrowed.get("text")) narrowed.set("text", shortTopic(parts[1] ?? ""));
  return html`<${Timelines} query=${narrowed} />`;
}

const RUN_COLUMNS = [
  { head: "From", cell: (run) => time(run.start) },
  { head: "Cause", cell: (run) => html`<${Verdict} cause=${run.verdict} inferred=${run.isInferred} />` },
  { head: "For", isNumber: true, cell: (run) => duration(60 * run.minutes) },
  { head: "Largest backlog", isNumber: true, cell: (run) => count(run.peakBacklogMessages) },
];

function Chart({ value }) {
  const { timeline } = value;
  return html`<${LineChart} start=${timeline.start} stepS=${timeline.stepS} lines=${[{ name: "Backlog", values: timeline.backlog }]}
    causes=${timeline.verdicts} inferred=${value.runs.some(({ isInferred }) => isInferred)} />
    <h2>What held it when</h2>
    <${Table} columns=${RUN_COLUMNS} rows=${value.runs} keyOf=${(run) => run.start} detail=${(run) => withoutCause(run.sentence ?? "")}
      empty="No minute of this range has telemetry." />
    ${value.runsMore > 0 && html`<p class="muted">${plural(value.runsMore, "earlier change")} more.</p>`}`;
}

// One subscription around an episode.
export function Minutes({ topic, subscription, cluster, range }) {
  const more = { topic, subscription, cluster, ...range };
  const answer = useAnswer(pastPath("/timeline", new URLSearchParams(), more), 0);
  if (answer.error) return html`<p class="freshness failed" role="alert">${answer.error.message}</p>`;
  return answer.value && html`<${Chart} value=${answer.value} />`;
}

export function Timeline({ parts, query }) {
  const [, topic, subscription] = parts;
  const answer = usePast("/timeline", query, { topic, subscription });
  return html`<section>
    <p class="crumbs"><a href=${link(["timelines"])}>Timelines</a></p>
    <div class="title"><h1>${shortTopic(topic)} · ${subscription}</h1><${Read} answer=${answer} /></div>
    <${Controls} query=${query} tables=${answer.tables} lengths=${LENGTHS} />
    ${answer.value && html`<${Chart} value=${answer.value} />`}
    <${Legend} />
    <${Elsewhere} path=${answer.path} command=${tableCommand("attribution", ` --where ${quoted(`subscription=${subscription}`)}`)} />
  </section>`;
}
