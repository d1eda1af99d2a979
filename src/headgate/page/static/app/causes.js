// The causes of a backlog: their names, and what a reader may do. Colours are in style.css.

export const CAUSES = [
  ["CONSUMER", "Consumer", "the consumer is the bottleneck"],
  ["NO_CONSUMER", "No consumer", "no consumer is connected"],
  ["THROTTLED_SUBSCRIPTION", "Subscription limit", "the dispatch limit of the subscription holds it"],
  ["THROTTLED_TOPIC", "Topic limit", "the dispatch limit of the topic holds it"],
  ["THROTTLED_BROKER", "Broker limit", "the broker-wide dispatch limit holds it"],
  ["BROKER", "Broker", "the broker itself takes the time"],
  ["NONE", "No backlog", "nothing waits longer than a moment"],
  ["SETTLING", "Settling", "it is too early for a verdict"],
];

const NAMES = { unknown: "Not known", ...Object.fromEntries(CAUSES.map(([cause, name]) => [cause, name])) };
const MEANINGS = Object.fromEntries(CAUSES.map(([cause, , meaning]) => [cause, meaning]));

export function causeName(cause) {
  return NAMES[cause] ?? cause;
}

export function causeMeaning(cause) {
  return MEANINGS[cause] ?? "";
}
