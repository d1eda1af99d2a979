// One subscription: its consumers, where its time went, and what would happen without the limit.

import { html } from "../../vendor/preact.js";
import { SubscriptionActions } from "../actions/index.js";
import { Changed, Growth } from "../changes.js";
import { UNKNOWN, bytes, count, duration, growth, instant, labelValue, percent, plural, quoted, rate, shortTopic, topicPath, withoutCause } from "../format.js";
import { Incident, LinkedTime, statsPath } from "../incident.js";
import { Elsewhere, Figure, Figures, Freshness, Legend, NotKnown, ShareBar, Table, Verdict } from "../parts.js";
import { link, useAnswer } from "../state.js";
import { LimitsTable } from "../limits_table.js";
import { Evidence, breaksText, growthPerS, isInferred, lossText } from "./now.js";
import { statesOf } from "./topic.js";

// Whether a consumer would take a message now.
function consumerState({ blockedConsumerOnUnackedMsgs: isBlocked, availablePermits: permits, headgate }) {
  if (headgate?.isInReserve) return "in reserve";
  if (isBlocked) return "busy: at its limit of unacknowledged messages";
  if (permits == null) return UNKNOWN;
  return permits > 0 ? "hungry: has room for messages" : "busy: its receiver queue is full";
}

function OutOfOrder({ stats }) {
  const acked = stats?.headgate?.acknowledgedOutOfOrder;
  if (acked == null) return null;
  const ranges = stats?.nonContiguousDeletedMessagesRanges;
  const span = stats.headgate.acknowledgedSpan;
  const among = span == null ? "" : `, among ${plural(span, "entry", "entries")}`;
  return html`<${Figure} name="Acknowledged out of order" value=${count(acked)} note=${acked ? `in ${plural(ranges, "range")} behind the oldest${among}` : null} />`;
}

function Consumers({ stats, name }) {
  const found = stats?.subscriptions?.[name]?.consumers;
  if (!found) return html`<${NotKnown} />`;
  return html`<${Table} rows=${found} empty="No consumer is connected." keyOf=${(each) => `${each.consumerName} ${each.address}`}
    columns=${[
      { head: "Consumer", cell: (each) => html`<span class="name">${each.consumerName}</span> <small class="muted">${each.address ?? ""}</small>` },
      { head: "Permits free", isNumber: true, cell: (each) => count(each.availablePermits) },
      { head: "Unacknowledged", isNumber: true, cell: (each) => count(each.unackedMessages) },
      { head: "Oldest of them", isNumber: true, cell: (each) => duration(each.headgate?.oldestUnackedAgeSeconds) },
      { head: "Gets", isNumber: true, cell: (each) => (each.msgRateOut == null ? UNKNOWN : `${rate(each.msgRateOut)} msg/s`) },
      { head: "State", cell: consumerState },
      { head: "Connected since", cell: (each) => (each.connectedSince ? instant(each.connectedSince) : UNKNOWN) },
    ]} />`;
}

function withoutLimit(report) {
  if (report.wouldHaveGrown == null || !report.limit) return null;
  return report.wouldHaveGrown
    ? `Without the limit of ${report.limit.text} the backlog would grow all the same: the consumers have shown ${rate(report.provenAckPerS)} msg/s.`
    : `Without the limit of ${report.limit.text} the backlog would shrink: the consumers have shown ${rate(report.provenAckPerS)} msg/s.`;
}

export function Subscription({ parts, query, everyS }) {
  const [, topic = "", name = ""] = parts;
  const path = `admin/v2/headgate/explain/${topicPath(topic)}?timeline=true`;
  const answer = useAnswer(topic && path, everyS);
  const report = answer.value?.subscriptions.find((each) => each.subscription === name);
  const stats = useAnswer(topic && answer.value && statsPath(answer.value), everyS);
  return html`<section class=${answer.isStale ? "is-stale" : ""}>
    <div class="title"><h1 class="name">${name}</h1><${Freshness} answer=${answer} everyS=${everyS} /></div>
    <p>of <a class="name" href=${link(["topic", topic])}>${shortTopic(topic)}</a></p>
    ${answer.value && !report && html`<p class="notice" role="alert">The topic has no such subscription.</p>`}
    ${report && html`
      <${LinkedTime} report=${answer.value} until=${query.get("until")} />
      <p class="lead"><${Verdict} cause=${report.verdict} inferred=${isInferred(report)} /> ${withoutCause(report.sentence)} <${Evidence} report=${report} /></p>
      <${Growth} report=${report} />
      <${SubscriptionActions} report=${report} whole=${answer.value} onDone=${answer.ask} onEnd=${() => location.assign(link(["topic", topic]))} />
      <${Incident} report=${answer.value} />
      <${Figures}>
        <${Figure} name="Messages" value=${count(report.backlogMessages)} note=${["not acknowledged, delivered or not", report.delayedMessages && `${count(report.delayedMessages)} not due yet`].filter(Boolean).join("; ")} />
        <${Figure} name="Size" value=${bytes(report.backlogBytes)} />
        <${Figure} name="Oldest" value=${duration(report.oldestAgeS)} />
        <${Figure} name="Growth" value=${growth(growthPerS(report))} />
        <${Figure} name="Empty in" value=${duration(report.drainsInS)} note=${lossText(report) && `${lossText(report)} in ${duration(report.windowS)}, not consumed`} />
        ${report.breaksInS != null && html`<${Figure} name="Quota" value=${breaksText(report)} />`}
        <${Figure} name="Delivered, not acknowledged" value=${count(stats.value?.subscriptions?.[name]?.unackedMessages ?? report.unackedMessages)} />
        <${Figure} name="Permits free" value=${report.permits == null ? UNKNOWN : `${count(report.permits)} of ${count(report.permitsMax)}`} note="messages that the consumers have asked for and not got" />
        <${OutOfOrder} stats=${stats.value?.subscriptions?.[name]} />
        <${Figure} name="Confidence" value=${percent(report.confidence)} note="how clearly one cause leads" />
      <//>
      ${withoutLimit(report) && html`<p class="notice calm">${withoutLimit(report)}</p>`}
      <${Changed} report=${answer.value} strip=${report} only=${name} inferred=${isInferred(report)} until=${query.get("until")} />
      <h2>Where the time went</h2>
      ${[["Last minute", report.minute], ["Last hour", report.hour]].map(([title, window]) => window && html`
        <p class="muted">${title}</p><${ShareBar} parts=${statesOf(window)} />
        <p class="states">${statesOf(window).filter(({ share }) => share > 0.005).map(({ name: state, share, seconds }) => html`
          <span>${state} ${percent(share)} <small class="muted">${duration(seconds)}</small></span>`)}</p>`)}
      <h2>Consumers</h2>
      <p class="muted">Permits are messages that a consumer has asked for and not got. Without any, its receiver queue is full: it has to work first.</p>
      <${Consumers} stats=${stats.value} name=${name} />
      <h2>Limits of this subscription</h2>
      <${LimitsTable} limits=${report.limits} at=${answer.value.at} empty="No limit of its own; those of its topic and broker apply." />`}
    <${Legend} />
    <${Elsewhere} path=${path} command="headgate explain ${quoted(topic)}"
      promql=${`rate(headgate_subscription_state_seconds_total{topic=${labelValue(topic)}, subscription=${labelValue(name)}}[5m])`} />
  </section>`;
}
