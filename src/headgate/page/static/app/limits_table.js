// The table of limits in force: how much of each is used and left, what waits for it, and where it is set.

import { html, useRef } from "../vendor/preact.js";
import { UNKNOWN, count, duration, plural, shortTopic, wholeTopic } from "./format.js";
import { NotKnown, Table, UseBar, amountText, limitText } from "./parts.js";
import { isAgent } from "./server.js";
import { link } from "./state.js";

const LEVELS = {
  subscription: "Dispatch, subscription", topic: "Dispatch, topic", broker: "Dispatch, broker",
  publish_topic: "Publish, topic", publish_broker: "Publish, broker",
};

// Looks from outside do not tell it; so the page must not say that there is none.
const OUTSIDE = "the agent has not read the policies of this topic; it reads those of topics with a backlog";

// A topic has no slash in its name, a subscription may.
function parts({ subject }) {
  const [topic, ...subscription] = subject.split(" / ");
  return { topic, subscription: subscription.join(" / ") };
}

// The view of what a limit is for; null of one of the whole broker.
function place(limit) {
  const { topic, subscription } = parts(limit);
  if (!topic) return null;
  return link(subscription ? ["subscription", wholeTopic(topic), subscription] : ["topic", wholeTopic(topic)]);
}

function Subject({ limit }) {
  const { topic, subscription } = parts(limit);
  if (!topic) return limit.broker ? `all topics of ${limit.broker}` : "all topics";
  return html`<a class="name" href=${place(limit)}>${shortTopic(topic)}${subscription ? ` / ${subscription}` : ""}</a>`;
}

const MEAN_MS = 15_000;
const SECONDS_MIN = 4;

const keyOf = ({ limit, budget }) => `${limit.level} ${limit.subject} ${limit.broker ?? ""} ${budget.dimension}`;

// How much of a limit is used in one period, as a mean: over what the page saw, or over a period that is longer. ``looks`` are
// {atMs, values: budgets by key}, the newest last. A short period alone says little, since messages pass in groups: it may be
// full below a limit that holds nothing. So the first looks, and the first under a new limit, tell nothing. Null if it is not known.
export function usedOf(row, looks) {
  const { limit, periodS, inWindow, granted } = row.budget;
  if (!limit || inWindow == null) return null;
  // An agent's figure is the mean between its last two looks.
  if (granted == null || 1000 * periodS >= MEAN_MS) return inWindow;
  const key = keyOf(row);
  const first = looks.find(({ values }) => {
    const before = values.get(key);
    return before?.limit === limit && before.granted <= granted;
  });
  const seconds = first ? (looks.at(-1).atMs - first.atMs) / 1000 : 0;
  return seconds < Math.max(periodS, SECONDS_MIN) ? null : ((granted - first.values.get(key).granted) * periodS) / seconds;
}

// What a limit leaves: never below zero, and null where it is not known what is used.
export function headroomOf(limit, used) {
  return used == null ? null : Math.max(0, limit - used);
}

// What ``values``, a Map by key, were in the answers of the last MEAN_MS, ``at`` being the instant of the newest.
export function useLooks(at, values) {
  const kept = useRef({ at: "", looks: [] });
  if (at && kept.current.at !== at) {
    const atMs = Date.parse(at);
    const looks = kept.current.looks.filter((look) => look.atMs < atMs && atMs - look.atMs <= MEAN_MS);
    kept.current = { at, looks: [...looks, { atMs, values }] };
  }
  return kept.current.looks;
}

function Used({ budget, used }) {
  if (used == null) return html`<span class="muted">${budget.limit && budget.inWindow != null ? "not measured yet" : UNKNOWN}</span>`;
  return html`<${UseBar} use=${used / budget.limit} />${" "}
    <small class="muted">${amountText(used, budget)}</small>`;
}

// A waiting subscription. One that the reader may not see has neither a name nor a link.
function Waiter({ waiter, limit }) {
  const { topic, subscription } = waiter;
  if (!subscription) return topic;
  const name = limit.level === "broker" ? `${shortTopic(topic)} / ${subscription}` : subscription;
  return html`<a class="name" href=${link(["subscription", wholeTopic(topic), subscription])}>${name}</a>`;
}

// Where the others that wait are listed.
function restOf(limit) {
  return place(limit) ?? (limit.level === "broker" ? link(["now"], { verdict: "THROTTLED_BROKER" }) : null);
}

function Waiters({ limit, withLinks }) {
  const { level, waiters, longestWaiting: named = [] } = limit;
  if (!waiters) return waiters == null ? UNKNOWN : "none";
  if (level === "subscription") return "this subscription";
  const noun = level.startsWith("publish") ? "producer" : "subscription";
  const more = waiters - named.length;
  const rest = named.length ? `and ${count(more)} more` : plural(waiters, noun);
  const href = withLinks && restOf(limit);
  return html`${named.map((waiter) => html`<div><${Waiter} waiter=${waiter} limit=${limit} /></div>`)}
    ${more > 0 && (href ? html`<a href=${href}>${rest}</a>` : rest)}`;
}

export function LimitWords() {
  return html`<p class="muted">A dispatch limit holds messages back from consumers, a publish limit holds producers.
    ${isAgent ? " Used: the mean between the agent's last two looks." : " Used: the mean of the last 15 seconds that this page has looked, or of a longer period."}
    ${" "}Headroom: what that leaves of the limit. Held: how long something has waited for it in all, since ${isAgent ? "the agent first saw its topic" : "its topic was loaded"}.</p>`;
}

// ``limits`` is null if they are not known; ``at`` is the instant of the answer that has them.
export function LimitsTable({ limits, at, empty, withSubject }) {
  const rows = (limits ?? []).flatMap((limit) => (limit.budgets ?? []).map((budget) => ({ limit, budget })));
  const looks = useLooks(at, new Map(rows.map((row) => [keyOf(row), row.budget])));
  const usedNow = (row) => usedOf(row, looks);
  if (!limits) return html`<${NotKnown} why=${OUTSIDE} />`;
  return html`<${Table} rows=${rows} empty=${empty} keyOf=${keyOf}
    columns=${[
      { head: "Level", cell: ({ limit }) => LEVELS[limit.level] ?? limit.level },
      ...(withSubject ? [{ head: "Of", cell: ({ limit }) => html`<${Subject} limit=${limit} />` }] : []),
      { head: "Limit", isNumber: true, cell: ({ budget }) => limitText(budget) },
      { head: "Used", cell: (row) => html`<${Used} budget=${row.budget} used=${usedNow(row)} />` },
      { head: "Headroom", isNumber: true, cell: (row) => amountText(headroomOf(row.budget.limit, usedNow(row)), row.budget) },
      { head: "Who waits", cell: ({ limit }) => html`<${Waiters} limit=${limit} withLinks=${withSubject} />` },
      { head: isAgent ? "Held, since first seen" : "Held, since loaded", isNumber: true, cell: ({ limit }) => duration(limit.waitingS) },
      { head: "Set where", cell: ({ budget, limit }) => budget.source || limit.source || UNKNOWN },
    ]} />`;
}
