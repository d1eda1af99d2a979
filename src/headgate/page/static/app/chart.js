// Lines over time with axes, and below them the strip of causes. SVG without a library: uPlot has 22 of the 60 KiB that a page may load.

import { html } from "../vendor/preact.js";
import { causeName } from "./causes.js";
import { rate } from "./format.js";
import { time } from "./past.js";

const WIDTH = 1000;
const HEIGHT = 220;
const LEFT = 70;
const RIGHT = 14;
const TOP = 12;
const STRIP = 16;
const BOTTOM = 24;
const GRID = 4;
const TIMES = 6;

// A round number at or above a value: 1, 2 or 5 times a power of ten.
function roundUp(value) {
  const power = 10 ** Math.floor(Math.log10(value));
  return [1, 2, 5, 10].map((each) => each * power).find((each) => each >= value * 0.9999);
}

function path(values, x, y) {
  let text = "";
  let isDown = false;
  values.forEach((value, at) => {
    if (value == null) {
      isDown = false;
      return;
    }
    text += `${isDown ? "L" : "M"}${x(at).toFixed(1)} ${y(value).toFixed(1)}`;
    // A point without neighbours is a short line.
    if (!isDown && values[at + 1] == null) text += "h1.5";
    isDown = true;
  });
  return text;
}

// ``lines`` are {name, values, style}; ``marks`` are {at, name, style}: instants with a vertical line.
export function LineChart({ start, stepS, lines, causes, unit, marks = [], most }) {
  const steps = Math.max(1, ...lines.map(({ values }) => values.length));
  const known = lines.flatMap(({ values }) => values.filter((value) => value != null));
  const top = roundUp(Math.max(most ?? 0, ...known, 1e-9) || 1);
  const bottom = HEIGHT - BOTTOM - (causes ? STRIP + 6 : 0);
  const x = (at) => LEFT + ((WIDTH - LEFT - RIGHT) * at) / steps;
  const y = (value) => bottom - ((bottom - TOP) * value) / top;
  const begin = Number(new Date(start));
  const stepOf = (at) => (Number(new Date(at)) - begin) / (1000 * stepS);
  const largest = known.length ? rate(Math.max(...known)) : "not known";
  const label = `${lines.map(({ name }) => name).join(", ")} from ${time(start)}: at most ${largest} ${unit}`;
  return html`<div class="scroll chart" tabindex="0"><svg role="img" viewBox="0 0 ${WIDTH} ${HEIGHT}" aria-label=${label}><title>${label}</title>
    ${Array.from({ length: GRID + 1 }, (_, each) => (top * each) / GRID).map((value) => html`
      <line class="rule" x1=${LEFT} x2=${WIDTH - RIGHT} y1=${y(value)} y2=${y(value)} />
      <text class="tick end" x=${LEFT - 8} y=${y(value) + 4}>${rate(value)}</text>`)}
    ${Array.from({ length: TIMES }, (_, each) => (steps * each) / TIMES).map((at) => html`
      <text class="tick" x=${x(at)} y=${HEIGHT - 6}>${time(begin + at * 1000 * stepS)}</text>`)}
    ${marks.filter(({ at }) => stepOf(at) >= 0 && stepOf(at) <= steps).map(({ at, name, style }) => html`
      <line class="mark ${style ?? ""}" x1=${x(stepOf(at))} x2=${x(stepOf(at))} y1=${TOP} y2=${bottom}><title>${name}</title></line>`)}
    ${lines.map(({ values, style }) => html`<path class="line ${style ?? ""}" d=${path(values, (at) => x(at + 0.5), y)} />`)}
    ${causes?.map((cause, at) => html`<rect x=${x(at).toFixed(1)} width=${(x(at + 1) - x(at) + 0.3).toFixed(1)} y=${bottom + 6} height=${STRIP}
      class=${cause ? `f-${cause}` : "f-unknown"}><title>${`${time(begin + at * 1000 * stepS)}: ${cause ? causeName(cause) : "not known"}`}</title></rect>`)}
  </svg></div>
  ${lines.length > 1 && html`<ul class="legend">${lines.map(({ name, style }) => html`<li class="key ${style ?? ""}">${name}</li>`)}</ul>`}`;
}
