// The start page: the worst backlogs, whose fault each is, and what would help.

import { html, useRef, useState } from "../../vendor/preact.js";
import { CAUSES, causeName } from "../causes.js";
import { clock } from "../changes.js";
import { bytes, count, duration, growth, plural, shortTopic, topicParts, unbroken, withoutCause } from "../format.js";
import { nextOrder } from "../order.js";
import { Elsewhere, Figure, Figures, Freshness, Legend, NotSeen, Sparkline, Strip, Table, Verdict } from "../parts.js";
import { isAgent } from "../server.js";
import { link, setQuery, useAnswer } from "../state.js";
import { ByName } from "./by_name.js";

const COUNT = 100;
const SORTS = {
  backlog: ["largest backlog", (report) => report.backlogMessages],
  age: ["oldest message", (report) => report.oldestAgeS],
  growth: ["fastest growth", (report) => growthPerS(report) ?? -Infinity],
};

export function growthPerS(report) {
  return report.windowS ? report.growthMessages / report.windowS : null;
}

// What left the backlog of the verdict's window without being consumed: "50 evicted, 2 expired".
export function lossText(report) {
  const lost = [["evicted", report.evictedMessages], ["expired", report.expiredMessages], ["skipped", report.skippedMessages]];
  return lost.filter(([, amount]) => amount).map(([how, amount]) => `${count(amount)} ${how}`).join(", ");
}

// When the backlog is gone at the pace at which it is consumed, beside what is lost meanwhile.
export function Drains({ report }) {
  const lost = lossText(report);
  return html`${duration(report.drainsInS)}${lost && html`<small class="alarm">${lost}</small>`}`;
}

export function isInferred(report) {
  return report.evidence === "inferred";
}

// How much an inferred verdict rests on.
export function Evidence({ report }) {
  if (!isInferred(report)) return null;
  const time = report.looks > 1 ? ` in ${duration(Math.round(report.lookedForS))}` : "";
  return html`<small class="evidence">From ${plural(report.looks, "look")}${time}${report.notSeen?.length ? `; not seen: ${report.notSeen.join("; ")}` : ""}</small>`;
}

// When this backlog fills a quota; empty if it is not expected to.
export function breaksText({ breaksInS: seconds, breaksQuota: type }) {
  if (seconds == null) return "";
  const quota = type === "time" ? "age quota" : "quota";
  return seconds ? `${quota} breaks in ${duration(seconds)}` : `${quota} exceeded`;
}

function matches(report, query) {
  const { tenant } = topicParts(report.topic);
  const text = (query.get("text") ?? "").toLowerCase();
  return (
    (!query.get("verdict") || report.verdict === query.get("verdict")) &&
    (!query.get("tenant") || tenant === query.get("tenant")) &&
    `${report.topic} ${report.subscription}`.toLowerCase().includes(text)
  );
}

function Filters({ reports, query }) {
  const tenants = [...new Set(reports.map((report) => topicParts(report.topic).tenant))].sort();
  const choose = (name) => (event) => setQuery(name, event.target.value);
  return html`<form class="filters" onSubmit=${(event) => event.preventDefault()} role="search">
    <label>Cause <select value=${query.get("verdict") ?? ""} onChange=${choose("verdict")}>
      <option value="">all</option>
      ${CAUSES.map(([cause, name]) => html`<option value=${cause}>${name}</option>`)}
    </select></label>
    <label>Tenant <select value=${query.get("tenant") ?? ""} onChange=${choose("tenant")}>
      <option value="">all</option>
      ${tenants.map((tenant) => html`<option value=${tenant}>${tenant}</option>`)}
    </select></label>
    <label>Order <select value=${query.get("sort") ?? "backlog"} onChange=${choose("sort")}>
      ${Object.entries(SORTS).map(([key, [name]]) => html`<option value=${key}>${name}</option>`)}
    </select></label>
    <label>Text <input type="search" value=${query.get("text") ?? ""} placeholder="topic or subscription"
      onInput=${choose("text")} /></label>
  </form>`;
}

function Totals({ answer, reports }) {
  const by = new Map();
  for (const { verdict } of reports) by.set(verdict, (by.get(verdict) ?? 0) + 1);
  return html`<${Figures}>
    <${Figure} name="Subscriptions" value=${count(answer.subscriptionsTotal)} />
    <${Figure} name="With a backlog" value=${count(answer.withBacklog)} note="a message not acknowledged, delivered or not" />
    ${CAUSES.filter(([cause]) => by.get(cause)).map(([cause]) => html`
      <${Figure} key=${cause} name=${html`<${Verdict} cause=${cause} inferred=${isInferred(answer)} />`} value=${html`
        <a href=${link(["now"], { verdict: cause })}>${count(by.get(cause))}</a>`} />`)}
  <//>`;
}

const COLUMNS = [
  {
    head: "Topic and subscription",
    cell: (report) => html`<a class="name" href=${link(["topic", report.topic])}>${shortTopic(report.topic)}</a>
      <a class="name" href=${link(["subscription", report.topic, report.subscription])}>${report.subscription}</a>`,
  },
  {
    head: "Cause",
    cell: (report) => report.verdict && html`<${Verdict} cause=${report.verdict} inferred=${isInferred(report)} />
      ${report.second && !report.bystander && html`<small>about equally: ${causeName(report.second)}</small>`}
      <small class="muted">${report.confidenceLevel === "settling" ? "" : `${report.confidenceLevel} confidence`}</small>`,
  },
  {
    head: "Last hour",
    cell: (report) => html`<${Strip} timeline=${report.timeline} inferred=${isInferred(report)} />
      <${Sparkline} values=${report.timeline?.backlog} label="Backlog over the last hour" width="180" />`,
  },
  { head: "Messages", isNumber: true, cell: (report) => count(report.backlogMessages) },
  { head: "Size", isNumber: true, cell: (report) => bytes(report.backlogBytes) },
  { head: "Oldest", isNumber: true, cell: (report) => duration(report.oldestAgeS) },
  { head: "Growth", isNumber: true, cell: (report) => growth(growthPerS(report)) },
  {
    head: "Empty / breaks in",
    isNumber: true,
    cell: (report) => html`<${Drains} report=${report} />${" "}
      ${report.breaksInS != null && html`<strong class="alarm">${breaksText(report)}</strong>`}`,
  },
];

const keyOf = (report) => `${report.topic} ${report.subscription}`;

// What is left of a row whose subscription is not among the backlogs any more: its place and its name.
function gone({ topic, subscription }) {
  return { topic, subscription, sentence: "It is not among these backlogs any more." };
}

// The reports in an order that stays while the pointer or the focus is in the table, the ``box``.
function useRows(shown, at, query) {
  const box = useRef(null);
  const kept = useRef({ order: null, reports: new Map() });
  const [, valueOf] = SORTS[query.get("sort")] ?? SORTS.backlog;
  const by = JSON.stringify(["sort", "verdict", "tenant", "text"].map((name) => query.get(name)));
  const [asked, setAsked] = useState(0);
  const answered = useRef(0);
  if (at) {
    const before = kept.current;
    const isHeld = Boolean(box.current?.matches(":hover, :focus-within"));
    const values = shown.map((report) => ({ key: keyOf(report), value: valueOf(report) ?? -Infinity }));
    const order = nextOrder(before.order, values, { by, at, isHeld, isAsked: answered.current !== asked });
    answered.current = asked;
    const found = new Map(shown.map((report) => [keyOf(report), report]));
    kept.current = { order, reports: new Map(order.keys.map((key) => [key, found.get(key) ?? gone(before.reports.get(key))])) };
  }
  const { order, reports } = kept.current;
  return { box, order, rows: [...reports.values()], sortAgain: () => setAsked(asked + 1) };
}

function Sorted({ query, order, onAsk }) {
  const [name] = SORTS[query.get("sort")] ?? SORTS.backlog;
  return html`<p class="muted">Sorted by ${name} at ${clock(order.at)} UTC${order.isOutdated ? "; the order has changed since" : ""}.${" "}
    Rows stay while the pointer or the focus is in the table, and until one has clearly overtaken another. <button type="button" class="small" onClick=${onAsk}>Sort again</button></p>`;
}

export function Now({ query, everyS }) {
  const path = `admin/v2/headgate/explain?count=${COUNT}&timeline=true`;
  const answer = useAnswer(path, everyS);
  const all = answer.value?.subscriptions ?? [];
  const { box, rows, order, sortAgain } = useRows(all.filter((report) => matches(report, query)), answer.value?.at, query);
  const storage = answer.value?.storage?.sentence;
  // A slow consumer may look well while its producers are held.
  const held = new Map((answer.value?.publishing ?? []).map((each) => [each.topic, each.sentence]));
  const idle = answer.value ? answer.value.subscriptionsTotal - answer.value.withBacklog : 0;
  return html`<section class=${answer.isStale ? "is-stale" : ""}>
    <div class="title"><h1>Backlogs now</h1>${answer.value?.broker && html`<span class="muted name">${answer.value.broker}</span>`}<${Freshness} answer=${answer} everyS=${everyS} /></div>
    ${!isAgent && html`<${ByName} error=${answer.error} />`}
    ${storage && html`<p class="notice" role="alert">${storage}</p>`}
    ${(answer.value?.damaged ?? []).map((each) => html`<p class="notice" role="alert">
      <a href=${link(["topic", each.topic])}>${shortTopic(each.topic)}</a>: ${each.damage}</p>`)}
    ${answer.value && html`
      <${Totals} answer=${answer.value} reports=${all} />
      <${Filters} reports=${all} query=${query} />
      ${isAgent && html`<${ByName} />`}
      ${rows.length > 1 && html`<${Sorted} query=${query} order=${order} onAsk=${sortAgain} />`}
      <div ref=${box}><${Table} columns=${COLUMNS} rows=${rows} keyOf=${keyOf}
        detail=${(report) => html`${withoutCause(report.sentence)} <${Evidence} report=${report} />
          ${held.has(report.topic) && html`<small class="muted">Publishing: ${unbroken(held.get(report.topic))}</small>`}`}
        empty=${all.length ? "No subscription matches the filters." : "No subscription has a backlog."} /></div>
      ${answer.value.withBacklog > all.length && html`<p class="muted">The ${plural(all.length, "largest backlog")} of${" "}
        ${count(answer.value.withBacklog)}; <code>headgate explain --count N</code> lists more.</p>`}
      ${idle > 0 && html`<p class="muted">${plural(idle, "subscription has", "subscriptions have")} no backlog.</p>`}
      <${Publishing} answer=${answer.value} />
      <${NotSeen} list=${answer.value.notSeen} />`}
    <${Legend} />
    <${Elsewhere} path=${path} command="headgate explain --count ${COUNT}"
      promql="topk(10, pulsar_subscription_back_log)" />
  </section>`;
}

function Publishing({ answer }) {
  const waiting = answer.publishing ?? [];
  if (!waiting.length) return null;
  return html`<h2>Producers that wait</h2>
    <ul class="plain">${waiting.map((each) => html`<li key=${each.topic}>
      <a class="name" href=${link(["topic", each.topic])}>${shortTopic(each.topic)}</a> ${unbroken(each.sentence)}</li>`)}</ul>`;
}
