// Replays of other limits and quotas over the past: the runs, and the points of one of them.

import { html } from "../../vendor/preact.js";
import { UNKNOWN, bytes, count, duration, percent, plural, rate } from "../format.js";
import { Elsewhere, Figure, Figures, Table } from "../parts.js";
import { Read, pastPath, tableCommand, time, useTables } from "../past.js";
import { setQuery, useAnswer } from "../state.js";

const COLUMNS = [
  { head: "Rank", isNumber: true, cell: (each) => each.rank ?? UNKNOWN },
  {
    head: "Settings",
    cell: (each) => html`<strong class="name">${each.name}</strong>${each.isPareto && html`<small>no other is better in every respect</small>`}`,
  },
  { head: "Score", isNumber: true, cell: (each) => rate(each.score) },
  { head: "At a quota", isNumber: true, cell: (each) => duration(each.secondsOverQuota) },
  { head: "Producers held", isNumber: true, cell: (each) => duration(each.parkedSeconds) },
  { head: "Drain rate used", isNumber: true, cell: (each) => percent(each.drainUsed) },
  { head: "Began to limit", isNumber: true, cell: (each) => count(each.activations) },
  { head: "Evicted", isNumber: true, cell: (each) => bytes(each.evictedBytes) },
  { head: "Demand not seen", isNumber: true, cell: (each) => percent(each.censoredShare) },
];

export function Backtests({ query }) {
  const tables = useTables();
  const path = pastPath("/backtests", new URLSearchParams(), { run: query.get("run") });
  const answer = { ...useAnswer(path, 0), tables: tables.value };
  const run = answer.value?.run;
  return html`<section>
    <div class="title"><h1>Backtests</h1><${Read} answer=${answer} /></div>
    <p class="muted">What other limits and quotas would have done, replayed over the telemetry. Lower scores are better.</p>
    ${answer.value && !run && html`<p class="notice calm">There is no run yet: <code>headgate pipeline backtest --out DIR --grid FILE</code> makes one.</p>`}
    ${run && html`
      <form class="filters" onSubmit=${(event) => event.preventDefault()}>
        <label>Run <select value=${run.runId} onChange=${(event) => setQuery("run", event.target.value)}>
          ${answer.value.runs.map((each) => html`<option value=${each.runId}>${each.runId}, ${time(each.runAt, true)}</option>`)}</select></label>
      </form>
      <${Figures}>
        <${Figure} name="Settings tried" value=${count(run.count)} />
        <${Figure} name="On the front" value=${count(run.front)} note="no other is better in every respect" />
        <${Figure} name="Topics" value=${count(run.topics)} />
      <//>
      <${Table} columns=${COLUMNS} rows=${run.points} keyOf=${(each) => each.number} detail=${(each) => each.settings} empty="The run has no points." />
      ${run.count > run.points.length && html`<p class="muted">${plural(run.count - run.points.length, "worse setting")} more.</p>`}`}
    <${Elsewhere} path=${path} command=${tableCommand("policy_backtest")} />
  </section>`;
}
