// The start page: the worst backlogs, whose fault each is, and what would help.

import { html } from "../../vendor/preact.js";
import { CAUSES } from "../causes.js";
import { UNKNOWN, bytes, count, duration, growth, plural, shortTopic, topicParts, wholeTopic, withoutCause } from "../format.js";
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

function breaches(answer) {
  const found = new Map();
  for (const { topic, quota } of answer.quotas ?? []) {
    const name = wholeTopic(topic);
    const inS = quota.exceeded ? 0 : quota.secondsToBreach;
    if (inS != null) found.set(name, Math.min(inS, found.get(name) ?? Infinity));
  }
  return found;
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
    <${Figure} name="With messages waiting" value=${count(answer.withBacklog)} />
    ${CAUSES.filter(([cause]) => by.get(cause)).map(([cause]) => html`
      <${Figure} key=${cause} name=${html`<${Verdict} cause=${cause} inferred=${isInferred(answer)} />`} value=${html`
        <a href=${link(["now"], { verdict: cause })}>${count(by.get(cause))}</a>`} />`)}
  <//>`;
}

function columns(breaksIn) {
  return [
    {
      head: "Topic and subscription",
      cell: (report) => html`<a class="name" href=${link(["topic", report.topic])}>${shortTopic(report.topic)}</a>
        <a class="name" href=${link(["subscription", report.topic, report.subscription])}>${report.subscription}</a>`,
    },
    {
      head: "Cause",
      cell: (report) => html`<${Verdict} cause=${report.verdict} inferred=${isInferred(report)} />
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
      cell: (report) => {
        const breaks = breaksIn.get(report.topic);
        return html`<${Drains} report=${report} />
          ${breaks != null && html`<strong class="alarm">quota ${breaks ? `breaks in ${duration(breaks)}` : "exceeded"}</strong>`}`;
      },
    },
  ];
}

export function Now({ query, everyS }) {
  const path = `admin/v2/headgate/explain?count=${COUNT}&timeline=true`;
  const answer = useAnswer(path, everyS);
  const all = answer.value?.subscriptions ?? [];
  const [, order] = SORTS[query.get("sort")] ?? SORTS.backlog;
  const shown = all.filter((report) => matches(report, query)).sort((a, b) => order(b) - order(a));
  const storage = answer.value?.storage?.sentence;
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
      <${Table} columns=${columns(breaches(answer.value))} rows=${shown}
        keyOf=${(report) => `${report.topic} ${report.subscription}`}
        detail=${(report) => html`${withoutCause(report.sentence)} <${Evidence} report=${report} />`}
        empty=${all.length ? "No subscription matches the filters." : "Nothing waits: no subscription has a backlog."} />
      ${answer.value.withBacklog > all.length && html`<p class="muted">The ${plural(all.length, "largest backlog")} of${" "}
        ${count(answer.value.withBacklog)}; <code>headgate explain --count N</code> lists more.</p>`}
      ${idle > 0 && html`<p class="muted">${plural(idle, "subscription has", "subscriptions have")} no message waiting.</p>`}
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
      <a class="name" href=${link(["topic", each.topic])}>${shortTopic(each.topic)}</a> ${each.sentence}</li>`)}</ul>`;
}
