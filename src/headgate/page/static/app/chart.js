// Lines over time, the strip of causes below them, and marks of instants. A chart fills its column with text of constant size; a
// pointer or the arrow keys tell the values at an instant. SVG without a library: decision 0107.

import { html, useLayoutEffect, useRef, useState } from "../vendor/preact.js";
import { causeName } from "./causes.js";
import { count, instant } from "./format.js";
import { Verdict } from "./parts.js";

const FLOOR = 146;
const STRIP = 16;
const TOP = 16;
const LEFT = 52;
const RIGHT = 20;
const GRID = 4;
const TICK_WIDTH = 56;
const TICKS_S = [60, 300, 600, 900, 1800, 3600, 7200, 10800, 21600, 43200, 86400];
const MOVES = { ArrowLeft: -1, ArrowDown: -1, ArrowRight: 1, ArrowUp: 1, PageDown: -10, PageUp: 10, Home: -1e9, End: 1e9 };

const short = new Intl.NumberFormat("en", { notation: "compact" });

// A round number at or above a value, which GRID divides well.
function roundUp(value) {
  const power = 10 ** Math.floor(Math.log10(value));
  return [1, 2, 4, 6, 8, 10].map((each) => each * power).find((each) => each >= value * 0.9999);
}

// The instants of the axis: round ones, as near to each other as their labels fit.
function ticks(beginMs, seconds, width) {
  const everyMs = 1000 * (TICKS_S.find((each) => (width * each) / seconds >= TICK_WIDTH) ?? TICKS_S.at(-1));
  const found = [];
  for (let ms = Math.ceil(beginMs / everyMs) * everyMs; ms <= beginMs + 1000 * seconds; ms += everyMs) found.push(ms);
  return found;
}

// "14:30", at midnight "21 Nov".
function tickText(ms) {
  const text = new Date(ms).toUTCString();
  return text.slice(17, 22) === "00:00" ? text.slice(5, 11) : text.slice(17, 22);
}

// A value that is not known leaves a gap; one without neighbours is a short line.
// ``place`` is where in its step a value stands.
function path(values, x, y, place) {
  return values.map((value, at) => value != null
    && `${values[at - 1] == null ? "M" : "L"}${x(at + place).toFixed(1)} ${y(value).toFixed(1)}${values[at + 1] == null ? "h1" : ""}`).filter(Boolean).join("");
}

// Equal neighbours are one rectangle: a day has 1,440 steps.
function runs(causes) {
  const found = [];
  causes.forEach((cause, at) => {
    if (at && causes[at - 1] === cause) found.at(-1).end = at + 1;
    else found.push({ cause, at, end: at + 1 });
  });
  return found;
}

function useWidth() {
  const box = useRef(null);
  const [width, setWidth] = useState(0);
  useLayoutEffect(() => {
    const observer = new ResizeObserver(() => setWidth(box.current.clientWidth));
    observer.observe(box.current);
    return () => observer.disconnect();
  }, []);
  return [box, width];
}

// ``lines`` are {name, values, style}; ``marks`` are {at, name, style}: instants with a sign above. ``text`` and ``axis`` write a
// value in words and at the axis, whose end is at least ``most``. What lies before ``shadeTo`` is shaded. Without lines and causes it
// has ``many`` steps. With ``atEnd`` a value is that of the end of its step, otherwise of all of the step.
export function LineChart({ start, stepS, lines, causes, many = 1, inferred, marks = [], shadeTo, atEnd = false, most = 4, axis = short.format, text = (value) => `${count(value)} messages` }) {
  const [box, width] = useWidth();
  const [chosen, choose] = useState(null);
  const steps = causes?.length || lines[0]?.values.length || many;
  const known = lines.flatMap(({ values }) => values.filter((value) => value != null));
  const top = roundUp(Math.max(most, ...known));
  const floor = lines.length ? FLOOR : TOP;
  const bottom = floor + (causes ? STRIP + 6 : 0);
  const begin = Number(new Date(start));
  const inner = width - LEFT - RIGHT;
  const stepOf = (at) => (Number(new Date(at)) - begin) / (1000 * stepS);
  const x = (step) => LEFT + (inner * Math.max(0, Math.min(steps, step))) / steps;
  const y = (value) => floor - ((floor - TOP) * value) / top;
  const within = (step) => Math.max(0, Math.min(steps - 1, Math.floor(step)));
  const at = within(chosen ?? steps);
  const placed = marks.filter((mark) => stepOf(mark.at) >= 0 && stepOf(mark.at) <= steps);
  const cause = causes && (causes[at] ?? "unknown");
  const place = atEnd ? 1 : 0.5;
  const edge = (step) => instant(new Date(begin + 1000 * stepS * step).toISOString());
  const when = atEnd ? `${edge(at)} to ${edge(at + 1).slice(11)} UTC` : `${edge(at).slice(0, 16)} UTC`;
  const said = lines.map(({ name, values }) => `${name}: ${values[at] == null ? "not known" : text(values[at])}`);
  // What is drawn last is said first: a line has not room for all.
  const here = placed.filter((mark) => within(stepOf(mark.at)) === at).map(({ name }) => name).reverse();
  const point = (event) => choose(within(((event.clientX - box.current.getBoundingClientRect().left - LEFT) * steps) / inner));
  const press = (event) => {
    if (!MOVES[event.key]) return;
    event.preventDefault();
    choose(within(at + MOVES[event.key]));
  };
  const leave = () => choose(null);
  return html`<figure class="scroll chart">
    <figcaption>${when} ${said.map((each, line) => html`<span class="key ${lines[line].style ?? ""}">${each}</span>`)}
      ${cause && html`<${Verdict} cause=${cause} inferred=${inferred} />`}${placed.length > 0 && html`<span class="here">${here.join("; ")}</span>`}</figcaption>
    <div ref=${box} role="slider" tabindex="0" aria-label="${lines.map(({ name }) => name).join(", ") || "Changes"} over time"
      aria-valuemin="0" aria-valuemax=${steps - 1} aria-valuenow=${at} aria-valuetext=${[when, ...said, cause && causeName(cause), ...here].filter(Boolean).join("; ")}
      onKeyDown=${press} onPointerMove=${point} onPointerDown=${point} onPointerLeave=${({ pointerType }) => pointerType === "mouse" && leave()} onBlur=${leave}>
      ${width > 0 && html`<svg viewBox="0 0 ${width} ${bottom + 24}" aria-hidden="true">
        ${stepOf(shadeTo) > 0 && html`<rect class="linked" x=${LEFT} y=${TOP} height=${bottom - TOP} width=${x(stepOf(shadeTo)) - LEFT} />`}
        ${lines.length > 0 && Array.from({ length: GRID + 1 }, (_, each) => (top * each) / GRID).map((value) => html`
          <path class="rule" d="M${LEFT} ${y(value)}h${inner}" /><text class="end" x=${LEFT - 8} y=${y(value) + 4}>${axis(value)}</text>`)}
        ${ticks(begin, steps * stepS, inner).map((ms) => html`
          <path class="rule" d="M${x(stepOf(ms))} ${bottom}v5" /><text class="middle" x=${x(stepOf(ms))} y=${bottom + 19}>${tickText(ms)}</text>`)}
        ${causes && runs(causes).map((run) => html`<rect class="f-${run.cause ?? "unknown"}" x=${x(run.at)} width=${x(run.end) - x(run.at)} y=${bottom - STRIP} height=${STRIP} />`)}
        ${placed.map((mark) => html`<path class="mark ${mark.style ?? ""}" d="M${x(stepOf(mark.at))} ${bottom}V11l-5-8h10l-5 8" />`)}
        ${lines.map(({ values, style }) => html`<path class="line ${style ?? ""}" d=${path(values, x, y, place)} />`)}
        ${chosen != null && html`<path class="cursor" d="M${x(at + place)} ${TOP}V${bottom}" />`}
      </svg>`}</div></figure>`;
}
