// The causes of a backlog: their names, and what a reader may do. Colours are in style.css.

export const CAUSES = [
  ["CONSUMER", "Consumer", "the consumer is the bottleneck"],
  ["NO_CONSUMER", "No consumer", "no consumer is connected"],
  ["THROTTLED_SUBSCRIPTION", "Subscription limit", "the dispatch limit of the subscription holds it"],
  ["THROTTLED_TOPIC", "Topic limit", "the dispatch limit of the topic holds it"],
  ["THROTTLED_BROKER", "Broker limit", "the broker-wide dispatch limit holds it"],
  ["BROKER", "Broker", "the broker itself takes the time"],
  ["NONE", "Keeps up", "nothing waits longer than a moment"],
  ["SETTLING", "Settling", "it is too early for a verdict"],
];
export const SHOWN = [...CAUSES, ["unknown", "Not known", "nothing was measured then"]];

const NAMES = Object.fromEntries(SHOWN.map(([cause, name]) => [cause, name]));
const MEANINGS = Object.fromEntries(SHOWN.map(([cause, , meaning]) => [cause, meaning]));

export function causeName(cause) {
  return NAMES[cause] ?? cause;
}

export function causeMeaning(cause) {
  return MEANINGS[cause] ?? "";
}

// States of the account of time, docs/telemetry.md has their meaning. The words in brackets are those of Pulsar.
const STATES = {
  transition: "the cursor or the consumer changes",
  caught_up: "nothing waits",
  not_due: "nothing is due yet",
  awaiting_ack: "consumer has everything, unacknowledged",
  no_consumer: "no consumer",
  unacked_limit: "consumer at its limit of unacknowledged messages",
  no_permits: "consumer's receiver queue full (no permits)",
  socket_full: "consumer does not read its connection",
  key_blocked: "consumers of the next keys not ready",
  throttled_subscription: "subscription limit holds",
  throttled_topic: "topic limit holds",
  throttled_broker: "broker limit holds",
  storage: "broker reads from the disk",
  dispatching: "broker sends",
  stuck: "dispatcher stuck",
};
const OF_CONSUMERS = { hungry: "consumer has room", busy: "consumer busy" };

// "topic limit holds (messages; consumer has room)".
export function stateName(state, dimension, consumer) {
  const more = [dimension, OF_CONSUMERS[consumer] ?? consumer].filter(Boolean).join("; ");
  return `${STATES[state] ?? state.replaceAll("_", " ")}${more ? ` (${more})` : ""}`;
}
