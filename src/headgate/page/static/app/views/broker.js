// The broker itself: what clients hold of its memory, its disk, its threads and its event loop.

import { html } from "../../vendor/preact.js";
import { UNKNOWN, bytes, count, duration, instant, withoutCause } from "../format.js";
import { Elsewhere, Figure, Figures, Freshness, Table, UseBar } from "../parts.js";
import { useAnswer } from "../state.js";

function milliseconds(seconds) {
  return seconds == null ? UNKNOWN : `${(1000 * seconds).toFixed(seconds < 0.01 ? 1 : 0)} ms`;
}

const HELD = {
  connections: "their objects and buffers", received: "frames that have arrived in part", unsent: "answers and messages that a client does not read",
  descriptions: "names and properties of producers and consumers", commands: "commands that wait", pending: "which messages consumers have and did not acknowledge",
  parked: "messages of producers that wait for a limit, a quota or the disk", staged: "messages of producers that are not on the disk yet", http: "requests to the web port",
};
const THREADS = {
  commit: "makes messages durable", read: "reads messages from the disk", metadata: "stores policies and schemas", upkeep: "maintains the files of the logs",
  removal: "frees files that are deleted", telemetry: "writes telemetry",
};

// A name of the metrics, and below it what it is.
function named(name, meanings) {
  return html`${name}<small class="muted">${meanings[name] ?? ""}</small>`;
}

// What the broker is like while nothing is wrong with it.
function lead({ diskFullInS }) {
  return diskFullInS == null ? "Nothing is wrong with the broker itself." : `Its disk is full in ${duration(diskFullInS)} at the present growth.`;
}

export function Broker({ everyS }) {
  const path = "admin/v2/headgate/broker";
  const answer = useAnswer(path, everyS);
  const report = answer.value;
  const most = report?.memoryMaxBytes;
  return html`<section class=${answer.isStale ? "is-stale" : ""}>
    <div class="title"><h1>Broker ${report?.broker ?? ""}</h1><${Freshness} answer=${answer} everyS=${everyS} /></div>
    ${report && html`
      <p class="lead">${report.sentence ? withoutCause(report.sentence) : lead(report.storage)}</p>
      <${Figures}>
        <${Figure} name="Running since" value=${instant(report.started)} />
        <${Figure} name="Connections" value=${count(report.connections)} note=${report.storage.connectionsRefused ? `${count(report.storage.connectionsRefused)} refused` : null} />
        <${Figure} name="Commit, mean" value=${milliseconds(report.storage.commitMeanS)} note=${`longest ${milliseconds(report.storage.commitLongestS)} in 10 s`} />
        <${Figure} name="Longest turn" value=${milliseconds(report.longestTurnS)} note=${report.longestTurn || "of the event loop"} />
        <${Figure} name="Free on the disk" value=${bytes(report.storage.freeBytes)} note=${report.storage.diskFullInS == null ? null : `full in ${duration(report.storage.diskFullInS)}`} />
        <${Figure} name="Slowed for memory" value=${count(report.slowed)} note=${report.closed ? `${count(report.closed)} closed` : null} />
      <//>
      <div class="halves"><div class="half"><h2>What clients hold of its memory</h2>
      <${Table} rows=${report.memory.filter((each) => each.kind !== "limit")} keyOf=${(each) => each.kind} empty="Nothing."
        columns=${[
          { head: "Held as", cell: (each) => named(each.kind, HELD) },
          { head: "Size", isNumber: true, cell: (each) => bytes(each.bytes) },
          { head: `Of ${bytes(most)}`, cell: (each) => html`<${UseBar} use=${most ? each.bytes / most : null} />` },
        ]} /></div>
      <div class="half"><h2>Threads</h2>
      <${Table} rows=${report.lanes} keyOf=${(each) => each.name} empty="Not known." columns=${[
        { head: "Thread", cell: (each) => named(each.name, THREADS) },
        { head: "Without an answer for", isNumber: true, cell: (each) => duration(each.silentS) },
      ]} /></div></div>`}
    <${Elsewhere} path=${path} promql="headgate_client_memory_bytes" />
  </section>`;
}
