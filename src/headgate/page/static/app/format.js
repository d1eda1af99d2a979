// Numbers, bytes, times and names as text. What is not known is an em dash, never a zero.

export const UNKNOWN = "—";

const whole = new Intl.NumberFormat("en", { maximumFractionDigits: 0 });

export function count(value) {
  return value == null ? UNKNOWN : whole.format(value);
}

export function rate(value) {
  if (value == null) return UNKNOWN;
  const size = Math.abs(value);
  const digits = size >= 100 || size === 0 ? 0 : size >= 10 ? 1 : 2;
  return new Intl.NumberFormat("en", { maximumFractionDigits: digits }).format(value);
}

// "+12/s", "−3.4/s", "0/s".
export function growth(value) {
  if (value == null) return UNKNOWN;
  const text = rate(Math.abs(value));
  return `${text === "0" ? "" : value < 0 ? "−" : "+"}${text}/s`;
}

const UNITS = ["B", "KiB", "MiB", "GiB", "TiB", "PiB"];

export function bytes(value) {
  if (value == null) return UNKNOWN;
  let at = 0;
  let left = Math.abs(value);
  while (left >= 1024 && at < UNITS.length - 1) {
    left /= 1024;
    at += 1;
  }
  const digits = at === 0 || left >= 100 ? 0 : left >= 10 ? 1 : 2;
  return `${value < 0 ? "−" : ""}${left.toFixed(digits)} ${UNITS[at]}`;
}

// The two largest units: "3 h 20 min", "45 s", "0.3 s".
export function duration(seconds) {
  if (seconds == null) return UNKNOWN;
  if (seconds === 0) return "0 s";
  if (seconds < 1) return `${Math.max(0, seconds).toFixed(1)} s`;
  const all = [["d", 86400], ["h", 3600], ["min", 60], ["s", 1]];
  const first = all.findIndex(([, size]) => seconds >= size);
  const [unit, size] = all[first];
  let left = Math.floor(seconds / size);
  const rest = all[first + 1];
  if (!rest) return `${left} ${unit}`;
  let more = Math.round((seconds - left * size) / rest[1]);
  if (more * rest[1] >= size) {
    left += 1;
    more = 0;
  }
  return more ? `${left} ${unit} ${more} ${rest[0]}` : `${left} ${unit}`;
}

export function percent(share) {
  return share == null ? UNKNOWN : `${Math.round(100 * share)}\u00a0%`;
}

// "persistent://a/b/c" in its parts.
export function topicParts(name) {
  const [domain, rest = ""] = name.split("://");
  const [tenant, namespace, ...local] = rest.split("/");
  return { domain, tenant, namespace, local: local.join("/") };
}

export function shortTopic(name) {
  const { tenant, namespace, local } = topicParts(name);
  return `${tenant}/${namespace}/${local}`;
}

// The topic of a partition; another topic is its own, also one whose name ends in -partition-01.
export function wholeTopic(name) {
  return name.replace(/(?<=[^/])-partition-(0|[1-9]\d{0,8})$/, "");
}

// "2026-11-28T21:10:05.123Z" to the second, as people read it.
export function instant(text) {
  return text.slice(0, 19).replace("T", " ");
}

// The path of a topic's REST routes, each part encoded.
export function topicPath(name) {
  const { domain, tenant, namespace, local } = topicParts(name);
  return [domain, tenant, namespace, local].map(encodeURIComponent).join("/");
}

// A sentence whose lines do not break before a percent sign.
export function unbroken(sentence) {
  return sentence.replace(/ %/g, "\u00a0%");
}

// A verdict's sentence without the verdict, for where that stands beside it.
export function withoutCause(sentence) {
  const text = unbroken(sentence.replace(/^([A-Z_]+|settling): /, ""));
  return text.charAt(0).toUpperCase() + text.slice(1);
}

export function plural(number, one, many = `${one}s`) {
  return `${count(number)} ${number === 1 ? one : many}`;
}

// Names are what clients chose, and commands are copied into a shell: one there may be a command itself.
// A word of a POSIX shell that stands for exactly ``text``.
export function quoted(text) {
  return /^[\w@%+=:,./-]+$/.test(text) ? text : `'${text.replaceAll("'", "'\\''")}'`;
}

// Whether a browser, or a proxy that decodes slashes, would resolve a part of a name in a path or URL, so that a
// request would be about something else: to delete the subscription .. would delete its topic.
export function isResolved(path) {
  return /(^|[/]|%2f|%5c)(\.|%2e){1,2}([/?#]|%2f|%5c|$)/i.test(path.split("?")[0]);
}

// The words of a command that asks for a URL as it stands.
export function curlWords(url) {
  return isResolved(url) ? ["curl", "--path-as-is"] : ["curl"];
}

// A label's value in PromQL, with its quotes.
export function labelValue(text) {
  return `"${text.replace(/[\\"]/g, "\\$&")}"`;
}
