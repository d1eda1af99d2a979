// Quotas and storage: what breaks soon, what fills the disk, and what keeps it.

import { html } from "../../vendor/preact.js";
import { UNKNOWN, bytes, count, duration, instant, withoutCause } from "../format.js";
import { BreaksIn, Elsewhere, Figure, Figures, Freshness, NotKnown, NotSeen, Table, TopicLink, UseBar } from "../parts.js";
import { isAgent } from "../server.js";
import { useAnswer } from "../state.js";

const COUNT = 50;

const when = (text) => html`<time>${instant(text)}</time>`;

function Quotas({ answer }) {
  return html`<h2>Backlog quotas that are exceeded, or will be within a day</h2>
    <${Table} rows=${answer.value?.quotas ?? []} keyOf=${({ topic, quota }) => `${topic} ${quota.type}`}
      empty="No backlog quota is exceeded, and none will be within a day."
      detail=${({ quota }) => withoutCause(quota.sentence)}
      columns=${[
        { head: "Topic", cell: ({ topic }) => html`<${TopicLink} topic=${topic} />` },
        { head: "Quota", cell: ({ quota }) => [quota.type === "size" ? bytes(quota.limit) : duration(quota.limit), quota.policy ?? "its policy is not known"].join(", ") },
        { head: "Used", cell: ({ quota }) => html`<${UseBar} use=${quota.use} isOver=${quota.exceeded} />` },
        { head: "Breaks in", isNumber: true, cell: ({ quota }) => html`<${BreaksIn} quota=${quota} />` },
        { head: "Because of", cell: ({ quota }) => quota.subscription ?? UNKNOWN },
        { head: "Evicted", isNumber: true, cell: ({ quota }) => count(quota.evictedMessages) },
        { head: "Set where", cell: ({ quota }) => quota.source || UNKNOWN },
      ]} />`;
}

const PARTS = [
  ["liveBytes", "Retained messages"], ["pinnedBytes", "Kept beside them"], ["deadBytes", "To be freed"],
  ["indexBytes", "Index"], ["openBytes", "Being written"], ["checkpointBytes", "Checkpoints"],
];

function Disk({ report }) {
  if (!report.logs) return html`<${NotKnown} why="a cluster does not tell its disks" />`;
  return html`<p class="lead">${withoutCause(report.forecast.sentence)}</p>
    ${report.logs.map((log) => html`<h3>Log ${log.log}</h3><${Figures}>
      <${Figure} name="Files" value=${bytes(log.fileBytes)} />
      ${PARTS.map(([field, name]) => html`<${Figure} name=${name} value=${bytes(log[field])} />`)}
      <${Figure} name="Bytes written for each published" value=${log.writeAmplification == null ? UNKNOWN : log.writeAmplification.toFixed(2)} />
    <//>`)}`;
}

// What looks do not tell has no column.
function columns(isInferred) {
  const topic = { head: "Topic", cell: (each) => html`<${TopicLink} topic=${each.topic} />` };
  const acked = { head: "Last acknowledged", cell: (each) => each.lastAcked && when(each.lastAcked) };
  if (isInferred) {
    return [
      topic,
      { head: "Stored", isNumber: true, cell: (each) => bytes(each.heldBytes) },
      { head: "Waits for subscriptions", isNumber: true, cell: (each) => bytes(each.waitingBytes) },
      { head: "Kept by", cell: (each) => each.subscription ?? UNKNOWN },
      { ...acked, cell: (each) => acked.cell(each) ?? UNKNOWN },
    ];
  }
  return [
    topic,
    { head: "Stored", isNumber: true, cell: (each) => bytes(each.heldBytes) },
    { head: "Kept beside it", isNumber: true, cell: (each) => bytes(each.pinnedBytes) },
    { head: "Deleting it frees", isNumber: true, cell: (each) => (each.freesBytes ? bytes(each.freesBytes) : "nothing yet") },
    { head: "Kept by", cell: (each) => each.subscription ?? (each.cause === "ledger" ? "its whole ledger" : each.cause) },
    { head: "Last publish", cell: (each) => (each.lastPublish ? when(each.lastPublish) : "not since the start") },
    { ...acked, cell: (each) => acked.cell(each) ?? "not since the start" },
  ];
}

export function Storage({ everyS }) {
  const path = `admin/v2/headgate/storage?count=${COUNT}`;
  const answer = useAnswer(path, everyS);
  const explained = useAnswer(`admin/v2/headgate/explain?count=${COUNT}`, everyS);
  const report = answer.value;
  return html`<section class=${answer.isStale ? "is-stale" : ""}>
    <div class="title"><h1>Quotas and storage</h1><${Freshness} answer=${answer} everyS=${everyS} /></div>
    <${Quotas} answer=${explained} />
    ${report && html`<h2>The disk</h2><${Disk} report=${report} />
      <h2>Topics that keep most of it</h2>
      <${Table} rows=${report.topics} keyOf=${(each) => each.topic} empty="No topic keeps messages on the disk."
        detail=${(each) => withoutCause(each.sentence)} columns=${columns(report.evidence === "inferred")} />
      <${NotSeen} list=${report.notSeen} />`}
    <${Elsewhere} path=${path} command="headgate explain --storage" promql=${isAgent ? "headgate_backlog_quota_seconds_to_breach" : "headgate_storage_bytes"} />
  </section>`;
}
