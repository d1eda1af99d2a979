// One backlog of the past: its sentence, its figures, and what was to blame minute by minute.

import { html } from "../../vendor/preact.js";
import { causeName } from "../causes.js";
import { count, duration, percent, quoted, shortTopic, withoutCause } from "../format.js";
import { Elsewhere, Figure, Figures, ShareBar, Verdict } from "../parts.js";
import { DAY, Read, between, pastPath, tableCommand, time, useTables } from "../past.js";
import { link, useAnswer } from "../state.js";
import { blameParts } from "./history.js";
import { Minutes } from "./timelines.js";

const DAY_MS = DAY * 3_600_000;
const MARGIN_MS = 5 * 60_000;

// Around the episode; of one longer than a day, its first day.
function rangeOf(episode, tables) {
  const start = Number(new Date(episode.start)) - MARGIN_MS;
  const end = Number(new Date(episode.end ?? tables?.until ?? episode.start)) + MARGIN_MS;
  return {
    since: new Date(start).toISOString(),
    until: new Date(Math.min(Math.max(end, start + 2 * MARGIN_MS), start + DAY_MS)).toISOString(),
  };
}

function Facts({ episode }) {
  return html`<${Figures}>
    <${Figure} name="Began" value=${time(episode.start)} note=${episode.continuesBefore ? "or earlier" : ""} />
    <${Figure} name="Over" value=${episode.isOpen ? "still open" : time(episode.end)}
      note=${{ skipped: "a client skipped it", unseen: "its telemetry ends" }[episode.ending] ?? ""} />
    <${Figure} name="Lasted" value=${between(episode.start, episode.end) || duration(60 * episode.minutes)} />
    <${Figure} name="Largest backlog" value=${count(episode.peakBacklogMessages)} note=${`at ${time(episode.peakMinute)}`} />
    <${Figure} name="Oldest message" value=${duration(episode.oldestAgeMaxS)} />
    <${Figure} name="Evicted" value=${count(episode.evicted)} />
    <${Figure} name="Expired" value=${count(episode.expired)} />
  <//>`;
}

export function Episode({ parts, query }) {
  const [, topic, subscription] = parts;
  const tables = useTables();
  const more = { topic, subscription, at: query.get("at"), cluster: query.get("cluster") };
  const path = pastPath("/episode", new URLSearchParams(), more);
  const answer = { ...useAnswer(path, 0), tables: tables.value };
  const episode = answer.value;
  return html`<section>
    <p class="crumbs"><a href=${link(["episodes"])}>Episodes</a></p>
    <div class="title"><h1>${shortTopic(topic)} · ${subscription}</h1><${Read} answer=${answer} /></div>
    ${episode && html`
      <p class="lead"><${Verdict} cause=${episode.cause ?? "unknown"} inferred=${episode.evidence === "inferred"} />
        ${" "}${withoutCause(episode.sentence ?? "")}</p>
      <${Facts} episode=${episode} />
      <h2>Time by cause</h2>
      <${ShareBar} parts=${blameParts(episode)} />
      <ul class="states plain">${blameParts(episode).map(({ cause, share }) => html`
        <li key=${cause}><${Verdict} cause=${cause} /> ${duration(episode.blameS[cause])} (${percent(share)})</li>`)}</ul>
      <h2>Minute by minute</h2>
      <${Minutes} topic=${topic} subscription=${subscription} cluster=${episode.cluster} range=${rangeOf(episode, tables.value)} />
      ${episode.secondCause && html`<p class="muted">Second cause: ${causeName(episode.secondCause)}.</p>`}`}
    <${Elsewhere} path=${path} command=${tableCommand("backlog_episodes", ` --where ${quoted(`subscription=${subscription}`)}`)} />
  </section>`;
}
