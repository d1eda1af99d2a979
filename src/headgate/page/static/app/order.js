// In which order rows stand, so that they do not move under the eyes of a reader. Pure.

// A row outranks one above it by so much of the larger of the two values, and of the largest of all: less is noise.
const OF_THE_TWO = 0.25;
const OF_THE_LARGEST = 0.05;

const descending = (a, b) => (b > a ? 1 : b < a ? -1 : 0);

function outranks(value, above, largest) {
  if (above === -Infinity) return value > above;
  const lead = value - above;
  return lead > OF_THE_TWO * Math.max(Math.abs(value), Math.abs(above)) && lead > OF_THE_LARGEST * Math.abs(largest);
}

function isOutOfOrder(values) {
  const largest = Math.max(...values);
  let least = Infinity;
  return values.some((value) => {
    const isOut = outranks(value, least, largest);
    least = Math.min(least, value);
    return isOut;
  });
}

// The order {by, keys, at, isOutdated} of the rows {key, value}, after ``before`` (null at first). ``by`` says what the
// rows are sorted by and filtered to, ``at`` is the instant of their figures. While the rows are held, because somebody
// reads them, none moves: what is gone keeps its place and what is new comes last. Else a row that is new goes to its
// place, and all are sorted anew when one has overtaken another by a margin.
export function nextOrder(before, rows, { by, at, isHeld = false, isAsked = false }) {
  const values = new Map(rows.map(({ key, value }) => [key, value]));
  const sorted = [...rows].sort((a, b) => descending(a.value, b.value)).map(({ key }) => key);
  const anew = { by, keys: sorted, at, isOutdated: false };
  if (!before || before.by !== by || isAsked) return anew;
  const keys = before.keys.filter((key) => isHeld || values.has(key));
  const known = new Set(keys);
  for (const key of sorted) {
    if (known.has(key)) continue;
    const place = isHeld ? -1 : keys.findIndex((each) => values.get(each) < values.get(key));
    keys.splice(place < 0 ? keys.length : place, 0, key);
  }
  const isOutdated = isOutOfOrder(keys.filter((key) => values.has(key)).map((key) => values.get(key)));
  return isOutdated && !isHeld ? anew : { ...before, keys, isOutdated };
}
