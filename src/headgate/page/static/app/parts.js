// Small pieces of every view: verdicts, strips, lines, bars, tables, and where the data come from.

import { html, useState } from "../vendor/preact.js";
import { address } from "./api.js";
import { SHOWN, causeMeaning, causeName } from "./causes.js";
import { UNKNOWN, bytes, count, curlWords, duration, percent, plural, quoted, rate, shortTopic, wholeTopic } from "./format.js";
import { commandHere } from "./clusters.js";
import { link } from "./state.js";

export function Verdict({ cause, inferred }) {
  return html`<span class="verdict c-${cause} ${inferred ? "inferred" : ""}" title=${causeMeaning(cause)}>
    ${causeName(cause)}</span>`;
}

// How a list of causes is read out: "consumer 40 of 60 minutes, not known 20".
function stripText(verdicts, label) {
  const minutes = new Map();
  for (const each of verdicts) minutes.set(each, (minutes.get(each) ?? 0) + 1);
  const parts = [...minutes].sort((a, b) => b[1] - a[1]);
  const names = parts.map(([cause, n]) => `${cause ? causeName(cause).toLowerCase() : "not known"} ${n}`);
  return `${label}: ${names.join(", ")}`;
}

// One rectangle for each minute, or other step, of a timeline, in the colour of its cause.
export function Strip({ timeline, inferred, width = 180, height = 14, label = "Minutes of the last hour by cause" }) {
  const verdicts = timeline?.verdicts ?? [];
  const step = width / Math.max(verdicts.length, 1);
  return html`<svg class="strip ${inferred ? "inferred" : ""}" role="img" viewBox="0 0 ${width} ${height}"
    width=${width} height=${height} preserveAspectRatio="none" aria-label=${stripText(verdicts, label)}>
    <title>${stripText(verdicts, label)}</title>
    ${verdicts.map((cause, at) => html`<rect x=${(at * step).toFixed(2)} y="0" height=${height}
      width=${(step + 0.3).toFixed(2)} class=${cause ? `f-${cause}` : "f-unknown"} />`)}
  </svg>`;
}

// A line without axes; values that are not known leave a gap.
export function Sparkline({ values, label, width = 110, height = 26 }) {
  const known = (values ?? []).filter((value) => value != null);
  if (known.length < 2) return html`<span class="muted">${UNKNOWN}</span>`;
  const top = Math.max(...known, 1);
  const step = width / (values.length - 1);
  let path = "";
  let isDown = false;
  values.forEach((value, at) => {
    if (value == null) {
      isDown = false;
      return;
    }
    const y = height - 2 - (value / top) * (height - 4);
    path += `${isDown ? "L" : "M"}${(at * step).toFixed(1)} ${y.toFixed(1)}`;
    isDown = true;
  });
  const text = `${label}: from ${count(known[0])} to ${count(known.at(-1))}, at most ${count(top)}`;
  return html`<svg class="sparkline" role="img" viewBox="0 0 ${width} ${height}" width=${width}
    height=${height} preserveAspectRatio="none" aria-label=${text}><title>${text}</title><path d=${path} /></svg>`;
}

// Shares of blame or of time as one bar; ``parts`` are {cause, share}.
export function ShareBar({ parts }) {
  const shown = parts.filter(({ share }) => share > 0.005);
  const text = shown.map(({ cause, share, name }) => `${name ?? causeName(cause)} ${percent(share)}`).join(", ");
  let at = 0;
  return html`<svg class="share" role="img" viewBox="0 0 100 10" preserveAspectRatio="none" aria-label=${text}>
    <title>${text}</title>
    ${shown.map(({ cause, share }) => {
      const x = at;
      at += 100 * share;
      return html`<rect x=${x.toFixed(2)} width=${(100 * share + 0.05).toFixed(2)} y="0" height="10"
        class="f-${cause}" />`;
    })}
  </svg>`;
}

// What is used of a limit or quota.
export function UseBar({ use, isOver }) {
  if (use == null) return html`<span class="muted">${UNKNOWN}</span>`;
  const width = Math.min(100, 100 * use);
  return html`<span class="use"><svg role="img" viewBox="0 0 100 8" preserveAspectRatio="none"
    aria-label="${percent(use)} used"><rect class="use-back" width="100" height="8" />
    <rect class=${isOver || use >= 1 ? "use-over" : use > 0.8 ? "use-high" : "use-front"}
      width=${width.toFixed(1)} height="8" /></svg> ${percent(use)}</span>`;
}

// When a quota is reached, and below it between which times, if that is known.
export function BreaksIn({ quota }) {
  const { secondsToBreach: seconds, secondsToBreachEarliest: earliest, secondsToBreachLatest: latest } = quota;
  if (quota.exceeded) return "exceeded";
  const isSteady = latest != null && latest - earliest < 0.05 * seconds;
  const to = latest == null ? "at the earliest" : `to ${duration(latest)}`;
  const band = isSteady ? "steady" : `${duration(earliest)} ${to}`;
  return html`${duration(seconds)} ${earliest != null && html`<small class="muted">${band}</small>`}`;
}

export function Legend() {
  return html`<ul class="legend" aria-label="Causes">
    ${SHOWN.map(([cause]) => html`<li><${Verdict} cause=${cause} /></li>`)}
  </ul>
  <details class="muted meanings"><summary>What the causes mean</summary><ul class="legend">
    ${SHOWN.map(([cause, , meaning]) => html`<li><${Verdict} cause=${cause} /> ${meaning}</li>`)}
    <li>A dashed frame: the cause is inferred from counters, not measured.</li></ul></details>`;
}

// A refused or failed request, and how old the last answer is.
export function Freshness({ answer, everyS }) {
  const { error, ageS, isStale } = answer;
  const age = ageS == null ? "no data yet" : `data ${duration(Math.round(ageS))} old`;
  const state = error ? "failed" : isStale ? "stale" : "fresh";
  return html`<p class="freshness ${state}" role=${error ? "alert" : "status"} aria-live="off">
    ${error ? html`<strong>${error.message}</strong>${error.status ? ` (status ${error.status})` : ""}; ${age}` : age}
    ${everyS ? "" : ", paused"}</p>`;
}

export function CopyButton({ text, label }) {
  const [isDone, setDone] = useState(false);
  const copy = async () => {
    await navigator.clipboard.writeText(text);
    setDone(true);
    setTimeout(() => setDone(false), 1500);
  };
  return html`<button type="button" class="small" onClick=${copy} aria-label="Copy ${label}">
    ${isDone ? "copied" : "copy"}</button>`;
}

// The same data elsewhere: as JSON, by curl, by headgate's command, in Prometheus.
export function Elsewhere({ path, command, promql }) {
  const url = address(path);
  const rows = [["curl", [...curlWords(url), quoted(url)].join(" ")], ["headgate", commandHere(command)], ["PromQL", promql]];
  return html`<details class="elsewhere"><summary>The same as JSON, curl, command${promql ? ", PromQL" : ""}</summary>
    <p><a href=${url} target="_blank" rel="noopener">JSON</a></p>
    ${rows.filter(([, text]) => text).map(([name, text]) => html`<${ToCopy} name=${name} text=${text} />`)}
  </details>`;
}

// A text to copy. A command begins with its name, so the name does not stand before it a second time.
export function ToCopy({ name, text }) {
  return html`<p>${!text.startsWith(`${name} `) && html`<span class="muted">${name}</span> `}<code>${text}</code>${" "}
    <${CopyButton} text=${text} label="the ${name} command" /></p>`;
}

// A table whose columns are {head, cell, isNumber}. ``keyOf`` names a row; ``detail`` makes a line below
// it over the whole width.
export function Table({ columns, rows, keyOf, empty, caption, detail }) {
  if (!rows.length) return html`<p class="muted">${empty}</p>`;
  return html`<div class="scroll"><table>
    ${caption && html`<caption>${caption}</caption>`}
    <thead><tr>${columns.map(({ head, isNumber }) => html`
      <th scope="col" class=${isNumber ? "number" : ""}>${head}</th>`)}</tr></thead>
    ${rows.map((row) => html`<tbody key=${keyOf(row)}>
      <tr>${columns.map(({ head, cell, isNumber }) => html`
        <td class=${isNumber ? "number" : ""} data-head=${head}>${cell(row)}</td>`)}</tr>
      ${detail && html`<tr class="detail"><td colspan=${columns.length}>${detail(row)}</td></tr>`}
    </tbody>`)}
  </table></div>`;
}

// A topic, or the one of a partition, with a link to what holds it back.
export function TopicLink({ topic }) {
  return html`<a class="name" href=${link(["topic", wholeTopic(topic)])}>${shortTopic(topic)}</a>`;
}

// A figure with its name: what a reader looks for first.
export function Figure({ name, value, note }) {
  return html`<div class="figure"><dt>${name}</dt><dd>${value}${note && html`<small>${note}</small>`}</dd></div>`;
}

export function Figures({ children }) {
  return html`<dl class="figures">${children}</dl>`;
}

// What no look has told. It must not read as if there were nothing.
export function NotKnown({ why }) {
  return html`<p class="not-known">Not known${why ? `: ${why}` : ""}</p>`;
}

// What the server could not look at, in its own words.
export function NotSeen({ list }) {
  if (!list?.length) return null;
  return html`<details class="not-seen" open=${list.length < 4}><summary>Not seen: ${plural(list.length, "thing")}</summary>
    <ul>${list.map((each) => html`<li key=${each}>${each}</li>`)}</ul></details>`;
}

// An amount in the unit of a limit, as all sentences have it: "12.5 msg/s", "500,000 B/s", "100 msg per 1 min".
export function amountText(amount, { dimension, periodS }) {
  if (amount == null) return UNKNOWN;
  const text = dimension === "bytes" ? `${count(amount)} B` : `${rate(amount)} msg`;
  return periodS === 1 ? `${text}/s` : `${text} per ${duration(periodS)}`;
}

export function limitText(budget) {
  return budget.limit == null ? budget.text : amountText(budget.limit, budget);
}
