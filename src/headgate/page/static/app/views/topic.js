// One topic: publishing and dispatching side by side, and the limits in force with where they are set.

import { html } from "../../vendor/preact.js";
import { TopicActions } from "../actions/index.js";
import { stateName } from "../causes.js";
import { Changed, Growth } from "../changes.js";
import { UNKNOWN, bytes, count, duration, labelValue, plural, quoted, rate, shortTopic, topicPath, unbroken, wholeTopic, withoutCause } from "../format.js";
import { Incident, LinkedTime } from "../incident.js";
import { LimitsTable } from "../limits_table.js";
import { BreaksIn, Elsewhere, Figure, Figures, Freshness, Legend, NotKnown, NotSeen, ShareBar, Strip, Table, UseBar, Verdict } from "../parts.js";
import { link, useAnswer } from "../state.js";
import { Evidence, isInferred } from "./now.js";

export function statesOf(window) {
  return (window?.states ?? []).map(({ state, consumer, dimension, share, seconds, verdict }) => ({
    cause: verdict,
    name: stateName(state, dimension, consumer),
    share,
    seconds,
  }));
}

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
    ${report.subscriptions.length === 0 && html`<p class="muted">Nothing is dispatched.</p>`}
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
      <p class="lead">${report.subscriptions.length ? unbroken(report.sentence.replace(/: [A-Z_]+: /, ": ")) : withoutCause(report.sentence)}</p>
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
