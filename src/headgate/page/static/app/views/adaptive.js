// Adaptive publish throttling: what the controller decided, by which signals, or what it would do.

import { html } from "../../vendor/preact.js";
import { UNKNOWN, bytes, count, instant, percent, withoutCause } from "../format.js";
import { Elsewhere, Figure, Figures, Freshness, Table, TopicLink } from "../parts.js";
import { useAnswer } from "../state.js";

const COUNT = 100;
// What each law lets producers send.
const LAWS = {
  pressure: "the fuller quota or memory, the less of their natural rate",
  drain: "what consumers take, and some more while there is room",
};

function Decisions({ report }) {
  return html`<${Table} rows=${report.decisions} keyOf=${(each) => `${each.at} ${each.topic}`}
    empty=${report.observeOnly ? "It would have slowed no topic." : "It has slowed no topic."}
    detail=${(each) => withoutCause(each.sentence)}
    columns=${[
      { head: "When", cell: (each) => instant(each.at) },
      { head: "Topic", cell: (each) => html`<${TopicLink} topic=${each.topic} />` },
      { head: "Decision", cell: (each) => `${each.observeOnly ? "would be " : ""}${each.kind}` },
      { head: "Rule", cell: (each) => [each.rule, each.memoryRule].filter(Boolean).join(", ").replaceAll("_", " ") },
      { head: "Memory pressure", isNumber: true, cell: (each) => percent(each.memoryPressure) },
      { head: "Quota pressure", isNumber: true, cell: (each) => percent(each.backlogPressure) },
      { head: "Before", cell: (each) => each.before ?? UNKNOWN },
      { head: "After", cell: (each) => each.after ?? "no limit" },
    ]} />`;
}

export function Adaptive({ everyS }) {
  const path = `admin/v2/headgate/adaptive?count=${COUNT}`;
  const answer = useAnswer(path, everyS);
  const report = answer.value;
  return html`<section class=${answer.isStale ? "is-stale" : ""}>
    <div class="title"><h1>Adaptive throttling</h1><${Freshness} answer=${answer} everyS=${everyS} /></div>
    ${report && !report.enabled && html`<p class="lead">It is switched off. With <code>adaptivePublisherThrottlingEnabled=true</code>${" "}
      the broker slows producers before memory or a backlog quota is full; with <code>adaptivePublisherThrottlingObserveOnly=true</code>${" "}
      it only says what it would do.</p>`}
    ${report?.enabled && html`
      ${report.observeOnly && html`<p class="notice calm">Observe-only: nothing is slowed. These are the decisions that it would carry out.</p>`}
      <${Figures}>
        <${Figure} name="Law" value=${report.law} note=${LAWS[report.law]} />
        <${Figure} name="Topics slowed now" value=${count(report.active)} />
        <${Figure} name="Memory pressure" value=${percent(report.memoryPressure)} note=${`${bytes(report.memoryUsedBytes)} of ${bytes(report.memoryLimitBytes)}`} />
        <${Figure} name="Last evaluation" value=${report.lastEvaluation ? report.lastEvaluation.slice(11, 19) : UNKNOWN} note=${report.failures ? `${count(report.failures)} failed` : null} />
      <//>
      <h2>Decisions</h2>
      <p class="muted">Pressure is 0 % up to a low watermark and 100 % from a high one: of a quota 75 % and 90 %, of memory 70 % and 85 %,
        unless <code>adaptivePublisherThrottling…WatermarkPct</code> are set. Rule: what set the new limit; target: the law alone.</p><${Decisions} report=${report} />`}
    <${Elsewhere} path=${path} promql="headgate_adaptive_memory_limit_bytes" />
  </section>`;
}
