// What the views of the past share: the range in the URL, its controls, and answers that do not change.

import { html, useState } from "../vendor/preact.js";
import { CAUSES } from "./causes.js";
import { duration } from "./format.js";
import { setQuery, useAnswer } from "./state.js";

const BASE = "admin/v2/headgate/history";
const HOUR_MS = 3_600_000;

export const HOUR = 1;
export const DAY = 24;

// "2026-11-21T10:00:00+00:00" as "21 Nov 10:00"; with ``withYear`` as "2026-11-21 10:00 UTC".
export function time(text, withYear = false) {
  if (!text) return "";
  const at = new Date(text);
  if (withYear) return `${at.toISOString().slice(0, 16).replace("T", " ")} UTC`;
  const day = at.toLocaleDateString("en-GB", { day: "numeric", month: "short", timeZone: "UTC" });
  return `${day} ${at.toISOString().slice(11, 16)}`.replaceAll(" ", "\u00a0");
}

export function between(start, end) {
  return end ? duration((new Date(end) - new Date(start)) / 1000) : "";
}

// The path of an answer, with the parameters of the URL that narrow it.
export function pastPath(name, query, more = {}) {
  const parameters = new URLSearchParams();
  for (const each of ["verdict", "tenant", "text", "cluster", "count", "run"]) {
    if (query.get(each)) parameters.set(each, query.get(each));
  }
  const until = query.get("until");
  const hours = Number(query.get("hours")) || DAY;
  if (until) {
    parameters.set("until", until);
    parameters.set("since", new Date(new Date(until) - hours * HOUR_MS).toISOString());
  }
  for (const [key, value] of Object.entries(more)) {
    if (value !== "" && value != null) parameters.set(key, value);
  }
  const text = parameters.toString();
  return `${BASE}${name}${text ? `?${text}` : ""}`;
}

// The tables' range; null before it is known.
export function useTables() {
  return useAnswer(BASE, 0);
}

// An answer for the range of the URL; without one, for the last day or hour of the tables.
export function usePast(name, query, more) {
  const tables = useTables();
  const asked = new URLSearchParams(query);
  if (!asked.get("until") && tables.value?.until) asked.set("until", tables.value.until);
  const answer = useAnswer(tables.value ? pastPath(name, asked, more) : null, 0);
  return { ...answer, tables: tables.value, error: answer.error ?? tables.error, path: pastPath(name, asked, more) };
}

// A failed request, or of what the answer is.
export function Read({ answer }) {
  const { error, tables, value } = answer;
  if (error) {
    return html`<p class="freshness failed" role="alert"><strong>${error.message}</strong>
      ${error.status ? ` (status ${error.status})` : ""}</p>`;
  }
  if (!value) return html`<p class="freshness" role="status">Reading the tables…</p>`;
  return html`<p class="freshness" role="status">${value.since && html`${time(value.since, true)} to ${time(value.until, true)}; `}
    the tables reach to ${time(tables?.until, true)} <button type="button" class="small" onClick=${answer.ask}>read again</button></p>`;
}

// "2026-11-21T10:00" of an input, which is in UTC here.
function inputValue(text) {
  return text ? new Date(text).toISOString().slice(0, 16) : "";
}

// Which hours, and with ``filters`` which rows.
export function Controls({ query, tables, lengths, filters = [], tenants = [] }) {
  const hours = Number(query.get("hours")) || DAY;
  const until = query.get("until") ?? tables?.until;
  const move = (by) => until && setQuery("until", new Date(Number(new Date(until)) + by * hours * HOUR_MS).toISOString());
  const choose = (name) => (event) => setQuery(name, event.target.value);
  const end = (event) => setQuery("until", event.target.value ? `${event.target.value}:00Z` : "");
  return html`<form class="filters" role="search" onSubmit=${(event) => event.preventDefault()}>
    <label>Range <select value=${String(hours)} onChange=${choose("hours")}>
      ${lengths.map((each) => html`<option value=${each}>${duration(each * 3600)}</option>`)}</select></label>
    <label>up to (UTC) <input type="datetime-local" value=${inputValue(until)} onChange=${end} /></label>
    <span class="steps"><button type="button" onClick=${() => move(-1)}>Earlier</button>
      <button type="button" onClick=${() => move(1)}>Later</button>
      <button type="button" onClick=${() => setQuery("until", "")}>Newest</button></span>
    ${filters.includes("verdict") && html`<label>Cause <select value=${query.get("verdict") ?? ""} onChange=${choose("verdict")}>
      <option value="">all</option>
      ${CAUSES.filter(([cause]) => !["NONE", "SETTLING"].includes(cause)).map(([cause, name]) => html`
        <option value=${cause}>${name}</option>`)}</select></label>`}
    ${filters.includes("tenant") && html`<${Typed} label="Tenant" name="tenant" query=${query} list=${tenants} />`}
    ${filters.includes("text") && html`<${Typed} label="Text" name="text" query=${query} hint="topic or subscription" />`}
  </form>`;
}

const TYPING_MS = 400;

// A text that narrows the answer once the reader has stopped typing: each answer reads the tables.
function Typed({ label, name, query, hint, list = [] }) {
  const [timer, setTimer] = useState(0);
  const typed = (event) => {
    clearTimeout(timer);
    const { value } = event.target;
    setTimer(setTimeout(() => setQuery(name, value), TYPING_MS));
  };
  return html`<label>${label} <input type="search" value=${query.get(name) ?? ""} placeholder=${hint}
    list=${list.length ? `list-${name}` : null} onInput=${typed} /></label>
    ${list.length > 0 && html`<datalist id="list-${name}">${list.map((each) => html`<option value=${each} />`)}</datalist>`}`;
}

// Where the same data are for tools.
export function tableCommand(table, more = "") {
  return `headgate pipeline show ${table} --out DIR${more}`;
}
