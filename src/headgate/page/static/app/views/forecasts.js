// Forecasts of backlog quotas in the past, and what came true of them.

import { html } from "../../vendor/preact.js";
import { UNKNOWN, count, duration, percent, plural, quoted, shortTopic } from "../format.js";
import { Elsewhere, Figure, Figures, Table, UseBar } from "../parts.js";
import { Controls, DAY, HOUR, Read, between, tableCommand, time, usePast } from "../past.js";
import { link } from "../state.js";
import { LineChart } from "../chart.js";

const LENGTHS = [HOUR, 3, 6, 12, DAY];
const SHOWN = 60;
const OUTCOMES = {
  within: "came within the band",
  earlier: "came before the band",
  later: "came after the band",
  not: "did not come",
  open: "not known yet",
};

function forecastLink(topic, cluster, query) {
  return link(["forecast", topic], { until: query.get("until"), hours: query.get("hours"), cluster });
}

function breachText(breach) {
  if (!breach) return UNKNOWN;
  const band = breach.earliestS == null || !breach.likelyS ? "" : `${duration(breach.earliestS)} to ${breach.latestS == null ? "more than a day" : duration(breach.latestS)}`;
  return html`${breach.likelyS ? duration(breach.likelyS) : html`<strong class="alarm">reached</strong>`}
    <small class="muted">${breach.quota} quota${band && `, ${band}`}</small>`;
}

function columns(query) {
  return [
    {
      head: "Topic",
      cell: (each) => html`<a class="name" href=${forecastLink(each.topic, each.cluster, query)}>${shortTopic(each.topic)}</a>
        <small class="muted">${each.policy}</small>`,
    },
    { head: "State", cell: (each) => each.state || "has room" },
    { head: "Most used", cell: (each) => html`<${UseBar} use=${each.peakUse} />` },
    { head: "Breach in, at the end", cell: (each) => breachText(each.breach) },
    { head: "Held producers", isNumber: true, cell: (each) => (each.heldS ? duration(each.heldS) : UNKNOWN) },
    { head: "Evicted", isNumber: true, cell: (each) => count(each.evictedMessages) },
  ];
}

function scoreColumns() {
  return [
    { head: "Topic", cell: (each) => html`<span class="name">${shortTopic(`persistent://${each.topic}`)}</span> <small class="muted">${each.quota} quota</small>` },
    { head: "Forecasts", isNumber: true, cell: (each) => count(each.forecasts) },
    { head: "Breaches", isNumber: true, cell: (each) => count(each.breached) },
    { head: "In the band", isNumber: true, cell: (each) => percent(each.coverage) },
    { head: "Missed", isNumber: true, cell: (each) => percent(each.missedShare) },
    { head: "False alarms", isNumber: true, cell: (each) => percent(each.falseAlarmShare) },
    { head: "Levels in the band", isNumber: true, cell: (each) => percent(each.levelCoverage) },
  ];
}

export function Forecasts({ query }) {
  const answer = usePast("/forecasts", query);
  const value = answer.value;
  return html`<section>
    <div class="title"><h1>Forecasts</h1><${Read} answer=${answer} /></div>
    <p class="muted">Backlog quotas: how full they were, when a breach was expected, and what came true.</p>
    <${Controls} query=${query} tables=${answer.tables} lengths=${LENGTHS} filters=${["tenant", "text"]} />
    ${value && html`
      <${Figures}>
        <${Figure} name="Reached at the end" value=${count(value.reached)} />
        <${Figure} name="Approached" value=${count(value.approached)} />
        <${Figure} name="Were reached" value=${count(value.wereReached)} />
        <${Figure} name="Forecasts" value=${count(value.accuracy.forecasts)} />
        <${Figure} name="Breaches in the band" value=${percent(value.accuracy.coverage)} note="80 % are meant to be" />
        <${Figure} name="Breaches missed" value=${percent(value.accuracy.missedShare)} />
        <${Figure} name="False alarms" value=${percent(value.accuracy.falseAlarmShare)} />
      <//>
      <${Table} columns=${columns(query)} rows=${value.topics} keyOf=${(each) => `${each.cluster} ${each.topic}`}
        detail=${(each) => each.sentence} empty="No topic of this range has a backlog quota that matches." />
      <h2>What came true</h2>
      <${Table} columns=${scoreColumns()} rows=${value.scores} keyOf=${(each) => `${each.topic} ${each.quota}`}
        empty="No forecast of this range has an outcome yet." />`}
    <${Elsewhere} path=${answer.path} command="headgate pipeline forecast --out DIR --score" />
  </section>`;
}

const MADE_COLUMNS = [
  { head: "Forecast at", cell: (each) => time(each.at) },
  { head: "Quota", cell: (each) => each.quota ?? UNKNOWN },
  { head: "Earliest", cell: (each) => time(each.earliest) || UNKNOWN },
  { head: "Likely", cell: (each) => time(each.likely) || UNKNOWN },
  { head: "Latest", cell: (each) => time(each.latest) || "more than a day" },
  { head: "Came", cell: (each) => time(each.came) || UNKNOWN },
  {
    head: "Outcome",
    cell: (each) => html`${["earlier", "not"].includes(each.outcome) ? html`<strong class="alarm">${OUTCOMES[each.outcome]}</strong>` : OUTCOMES[each.outcome]}
      <small class="muted">${each.came ? `${between(each.at, each.came)} after it` : ""}</small>`,
  },
];

export function Forecast({ parts, query }) {
  const [, topic] = parts;
  const answer = usePast("/forecast", query, { topic });
  const value = answer.value;
  const came = [...new Set((value?.forecasts ?? []).map((each) => each.came).filter(Boolean))];
  return html`<section>
    <p class="crumbs"><a href=${link(["forecasts"])}>Forecasts</a></p>
    <div class="title"><h1>${shortTopic(topic)}</h1><${Read} answer=${answer} /></div>
    <${Controls} query=${query} tables=${answer.tables} lengths=${LENGTHS} />
    ${value && html`
      ${value.sentence && html`<p class="lead">${value.sentence}</p>`}
      <${LineChart} start=${value.use.start} stepS=${value.use.stepS} most=${1} axis=${percent} text=${percent}
        lines=${[{ name: "Size quota used", values: value.use.size }, { name: "Time quota used", values: value.use.time, style: "second" }]}
        marks=${came.map((at) => ({ at, name: `a quota was reached at ${time(at)}`, style: "breach" }))} />
      <h2>${plural(value.forecasts.length, "forecast")} of a breach</h2>
      ${value.forecasts.length > SHOWN && html`<p class="muted">The newest ${SHOWN}; a shorter range has the others.</p>`}
      <${Table} columns=${MADE_COLUMNS} rows=${[...value.forecasts].reverse().slice(0, SHOWN)} keyOf=${(each) => each.at} empty="No forecast expected a breach." />`}
    <${Elsewhere} path=${answer.path} command=${tableCommand("quota_usage", ` --where ${quoted(`topic=${topic}`)}`)} />
  </section>`;
}
