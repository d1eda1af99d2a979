// One topic: publishing and dispatching side by side, and the limits in force with where they are set.

import { html, useRef } from "../../vendor/preact.js";
import { TopicActions } from "../actions/index.js";
import { Changed, Growth } from "../changes.js";
import { UNKNOWN, bytes, count, duration, labelValue, plural, quoted, rate, shortTopic, topicPath, wholeTopic, withoutCause } from "../format.js";
import { Incident, LinkedTime } from "../incident.js";
import { BreaksIn, Elsewhere, Figure, Figures, Freshness, Legend, NotKnown, NotSeen, ShareBar, Strip, Table, UseBar, Verdict, limitText } from "../parts.js";
import { link, useAnswer } from "../state.js";
import { Evidence, isInferred } from "./now.js";

const LEVELS = {
  subscription: "Dispatch, subscription", topic: "Dispatch, topic", broker: "Dispatch, broker",
  publish_topic: "Publish, topic", publish_broker: "Publish, broker",
};

export function statesOf(window) {
  return (window?.states ?? []).map(({ state, consumer, dimension, share, seconds, verdict }) => ({
    cause: verdict,
    name: [state, dimension, consumer].filter(Boolean).join(" ").replaceAll("_", " "),
    share,
    seconds,
  }));
}

function Subject({ limit }) {
  const [topic, subscription] = limit.subject.split(" / ");
  if (!topic) return limit.broker ? `all topics of ${limit.broker}` : "all topics";
  const target = subscription ? ["subscription", wholeTopic(topic), subscription] : ["topic", wholeTopic(topic)];
  return html`<a class="name" href=${link(target)}>${shortTopic(topic)}${subscription ? ` / ${subscription}` : ""}</a>`;
}

const MEAN_MS = 15_000;

const keyOf = ({ limit, budget }) => `${limit.level} ${limit.subject} ${limit.broker ?? ""} ${budget.dimension}`;

// What was used of each limit since the page looked, at most MEAN_MS ago. A single period says
// little, since messages pass in groups: the first look, and the first under a new limit, have only it.
function useOfLimits(rows, at) {
  const kept = useRef({ at: "", looks: [] });
  if (at && kept.current.at !== at) {
    const atMs = Date.parse(at);
    const budgets = new Map(rows.map((row) => [keyOf(row), row.budget]));
    const looks = kept.current.looks.filter((look) => look.atMs < atMs && atMs - look.atMs <= MEAN_MS);
    kept.current = { at, looks: [...looks, { atMs, budgets }] };
  }
  const { looks } = kept.current;
  return (row) => {
    const { limit, periodS, inWindow, granted } = row.budget;
    if (!limit || inWindow == null) return null;
    const isSame = (look) => {
      const before = look.budgets.get(keyOf(row));
      return before?.limit === limit && before.granted <= granted;
    };
    const first = looks.find(isSame);
    const seconds = first ? (looks.at(-1).atMs - first.atMs) / 1000 : 0;
    if (granted == null || seconds < periodS) return inWindow / limit;
    return ((granted - first.budgets.get(keyOf(row)).granted) * periodS) / seconds / limit;
  };
}

// ``limits`` is null if they are not known; ``at`` is the instant of the answer that has them.
export function LimitsTable({ limits, at, empty, withSubject }) {
  const rows = (limits ?? []).flatMap((limit) => (limit.budgets ?? []).map((budget) => ({ limit, budget })));
  const useOf = useOfLimits(rows, at);
  if (!limits) return html`<${NotKnown} why=${OUTSIDE} />`;
  return html`<${Table} rows=${rows} empty=${empty} keyOf=${keyOf}
    columns=${[
      { head: "Level", cell: ({ limit }) => LEVELS[limit.level] ?? limit.level },
      ...(withSubject ? [{ head: "Of", cell: ({ limit }) => html`<${Subject} limit=${limit} />` }] : []),
      { head: "Limit", isNumber: true, cell: ({ budget }) => limitText(budget) },
      { head: "Used", cell: (row) => html`<${UseBar} use=${useOf(row)} />` },
      { head: "Waiting", isNumber: true, cell: ({ limit }) => count(limit.waiters) },
      { head: "Held for", isNumber: true, cell: ({ limit }) => duration(limit.waitingS) },
      { head: "Set where", cell: ({ budget, limit }) => budget.source || limit.source || UNKNOWN },
    ]} />`;
}

// Looks from outside do not tell it; so the page must not say that there is none.
const OUTSIDE = "the agent has not read the policies of this topic; it reads those of topics with a backlog";
const OUTSIDE_WAITING = "a cluster does not tell which messages wait in front of a broker";

function Publishing({ publishing, inferred }) {
  const { parked } = publishing;
  return html`<section class="half"><h2>Publishing</h2>
    ${publishing.sentence && html`<p class="sentence">${withoutCause(publishing.sentence)}</p>`}
    <${Figures}>
      <${Figure} name=${inferred ? "Connections of producers" : "Producers"} value=${count(publishing.producers)} />
      <${Figure} name="Messages" value=${`${rate(publishing.messagesPerS)}/s`} />
      <${Figure} name="Bytes" value=${`${bytes(publishing.bytesPerS)}/s`} />
    <//>
    ${!parked ? html`<${NotKnown} why=${OUTSIDE_WAITING} />` : html`<${Table} rows=${parked} empty="No message of a producer has waited since the topic was loaded."
      keyOf=${(each) => each.cause} columns=${[
        { head: "Cause of waiting", cell: (each) => each.cause.replaceAll("_", " ") },
        { head: "Messages now", isNumber: true, cell: (each) => count(each.messages) },
        { head: "Last minute", isNumber: true, cell: (each) => duration(each.minuteS) },
        { head: "Last hour", isNumber: true, cell: (each) => duration(each.hourS) },
      ]} />`}
  </section>`;
}

function Dispatching({ report }) {
  return html`<section class="half"><h2>Dispatching</h2>
    ${report.subscriptions.length === 0 && html`<p class="muted">This topic has no subscription.</p>`}
    ${report.subscriptions.map((each) => html`<article class="card" key=${each.subscription}>
      <h3><a class="name" href=${link(["subscription", report.topic, each.subscription])}>${each.subscription}</a>
        <${Verdict} cause=${each.verdict} inferred=${isInferred(each)} /></h3>
      <p class="sentence">${withoutCause(each.sentence)} <${Evidence} report=${each} /></p>
      <p>${count(each.backlogMessages)} messages, ${bytes(each.backlogBytes)}, oldest ${duration(each.oldestAgeS)},${" "}
        ${plural(each.consumers, "consumer")}</p>
      <${Strip} timeline=${each.timeline} inferred=${isInferred(each)} width="320" />
      <p class="muted">The last minute by state</p>
      <${ShareBar} parts=${statesOf(each.minute)} />
    </article>`)}
  </section>`;
}

export function Topic({ parts, query, everyS }) {
  const name = parts[1] ?? "";
  const path = `admin/v2/headgate/explain/${topicPath(name)}?timeline=true`;
  const answer = useAnswer(name && path, everyS);
  const report = answer.value;
  return html`<section class=${answer.isStale ? "is-stale" : ""}>
    <div class="title"><h1 class="name">${shortTopic(name)}</h1><${Freshness} answer=${answer} everyS=${everyS} /></div>
    ${report && html`
      ${report.damage && html`<p class="notice" role="alert">${report.damage}</p>`}
      <${LinkedTime} report=${report} until=${query.get("until")} />
      <p class="lead">${report.sentence.replace(/: [A-Z_]+: /, ": ")}</p>
      <${Growth} report=${report.subscriptions[0]} />
      <${TopicActions} report=${report} onDone=${answer.ask} />
      <${Incident} report=${report} />
      <div class="halves"><${Publishing} publishing=${report.publishing} inferred=${isInferred(report)} /><${Dispatching} report=${report} /></div>
      <${Changed} report=${report} strip=${report.subscriptions[0]} inferred=${isInferred(report)} until=${query.get("until")} />
      <h2>Limits in force</h2>
      <${LimitsTable} at=${report.at} limits=${report.limits && [...(report.publishing.limits ?? []), ...report.limits, ...report.subscriptions.flatMap((each) => each.limits ?? [])]}
        empty="No limit is in force for this topic." />
      <h2>Backlog quotas</h2>
      <${Table} rows=${report.quotas} empty=${isInferred(report) ? "No look has shown a backlog quota." : "No backlog quota is in force."} keyOf=${(quota) => quota.type} columns=${[
        { head: "Quota", cell: (quota) => [quota.type, quota.policy ?? "its policy is not known"].join(", ") },
        { head: "Limit", isNumber: true, cell: (quota) => (quota.type === "size" ? bytes(quota.limit) : duration(quota.limit)) },
        { head: "Used", cell: (quota) => html`<${UseBar} use=${quota.use} isOver=${quota.exceeded} />` },
        { head: "Breaks in", isNumber: true, cell: (quota) => html`<${BreaksIn} quota=${quota} />` },
        { head: "Because of", cell: (quota) => quota.subscription ?? UNKNOWN },
        { head: "Set where", cell: (quota) => quota.source || UNKNOWN },
      ]} />
      <${NotSeen} list=${report.notSeen} />`}
    <${Legend} />
    <${Elsewhere} path=${path} command="headgate explain ${quoted(name)}" promql=${`pulsar_subscription_back_log{topic=${labelValue(name)}}`} />
  </section>`;
}
