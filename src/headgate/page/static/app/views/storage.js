// Quotas and storage: what breaks soon, what fills the disk, and what keeps it.

import { html } from "../../vendor/preact.js";
import { UNKNOWN, bytes, count, duration, withoutCause } from "../format.js";
import { Elsewhere, Figure, Figures, Freshness, Table, TopicLink, UseBar } from "../parts.js";
import { useAnswer } from "../state.js";

const COUNT = 50;

function Quotas({ answer }) {
  return html`<h2>Backlog quotas that are exceeded, or will be within a day</h2>
    <${Table} rows=${answer.value?.quotas ?? []} keyOf=${({ topic, quota }) => `${topic} ${quota.type}`}
      empty="No backlog quota is exceeded, and none will be within a day."
      detail=${({ quota }) => withoutCause(quota.sentence)}
      columns=${[
        { head: "Topic", cell: ({ topic }) => html`<${TopicLink} topic=${topic} />` },
        { head: "Quota", cell: ({ quota }) => `${quota.type === "size" ? bytes(quota.limit) : duration(quota.limit)}, ${quota.policy}` },
        { head: "Used", cell: ({ quota }) => html`<${UseBar} use=${quota.use} isOver=${quota.exceeded} />` },
        { head: "Breaks in", isNumber: true, cell: ({ quota }) => (quota.exceeded ? "exceeded" : duration(quota.secondsToBreach)) },
        { head: "Because of", cell: ({ quota }) => quota.subscription ?? UNKNOWN },
        { head: "Evicted", isNumber: true, cell: ({ quota }) => count(quota.evictedMessages) },
        { head: "Set where", cell: ({ quota }) => quota.source },
      ]} />`;
}

const PARTS = [
  ["liveBytes", "Retained messages"], ["pinnedBytes", "Pinned beside them"], ["deadBytes", "To be freed"],
  ["indexBytes", "Index"], ["openBytes", "Being written"], ["checkpointBytes", "Checkpoints"],
];

export function Storage({ everyS }) {
  const path = `admin/v2/headgate/storage?count=${COUNT}`;
  const answer = useAnswer(path, everyS);
  const explained = useAnswer(`admin/v2/headgate/explain?count=${COUNT}`, everyS);
  const report = answer.value;
  return html`<section class=${answer.isStale ? "is-stale" : ""}>
    <div class="title"><h1>Quotas and storage</h1><${Freshness} answer=${answer} everyS=${everyS} /></div>
    <${Quotas} answer=${explained} />
    ${report && html`<h2>The disk</h2>
      <p class="lead">${withoutCause(report.forecast.sentence)}</p>
      ${report.logs.map((log) => html`<h3>Log ${log.log}</h3><${Figures}>
        <${Figure} name="Files" value=${bytes(log.fileBytes)} />
        ${PARTS.map(([field, name]) => html`<${Figure} name=${name} value=${bytes(log[field])} />`)}
        <${Figure} name="Written for each byte" value=${log.writeAmplification == null ? UNKNOWN : log.writeAmplification.toFixed(2)} />
      <//>`)}
      <h2>Topics that keep most of it</h2>
      <${Table} rows=${report.topics} keyOf=${(each) => each.topic} empty="No topic keeps messages on the disk."
        detail=${(each) => withoutCause(each.sentence)}
        columns=${[
          { head: "Topic", cell: (each) => html`<${TopicLink} topic=${each.topic} />` },
          { head: "Messages", isNumber: true, cell: (each) => bytes(each.heldBytes) },
          { head: "Pinned beside", isNumber: true, cell: (each) => bytes(each.pinnedBytes) },
          { head: "Deleting it frees", isNumber: true, cell: (each) => bytes(each.freesBytes) },
          { head: "Kept by", cell: (each) => each.subscription ?? each.cause },
          { head: "Last publish", cell: (each) => each.lastPublish ?? "not since the start" },
          { head: "Last acknowledged", cell: (each) => each.lastAcked ?? "not since the start" },
        ]} />`}
    <${Elsewhere} path=${path} command="headgate explain --storage" promql="headgate_storage_bytes" />
  </section>`;
}
