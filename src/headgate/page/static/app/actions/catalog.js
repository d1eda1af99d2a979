// Every action: for whom it is, which operation of the broker's authorization it needs, its fields,
// its request and its effect.

import { topicPath } from "../format.js";
import * as effects from "./effects.js";
import * as requests from "./requests.js";

const CHANGE = { name: "change", label: "Change", choices: [["set", "set it"], ["remove", "remove it"]], first: "set" };
const isSet = ({ change }) => change !== "remove";

// A limit without a number would count as not set.
const hasNumber = (values) => !isSet(values) || Number(values.messages) > 0 || Number(values.bytes) > 0;

const MISSING = "Nothing yet: enter messages, bytes or both. To have no limit, choose “remove it”.";

const DISPATCH_FIELDS = [
  CHANGE,
  { name: "messages", label: "Messages per period (empty: no limit)", kind: "number", when: isSet },
  { name: "bytes", label: "Bytes per period (empty: no limit)", kind: "number", when: isSet },
  { name: "periodS", label: "Period in seconds", kind: "number", first: "1", min: 1, when: isSet },
  { name: "relative", label: "Counts", choices: [["no", "absolutely"], ["yes", "on top of the publish rate"]], first: "no", when: isSet },
];

const text = (value) => (value > 0 ? String(value) : "");

function dispatchValues(found) {
  return found && {
    messages: text(found.dispatchThrottlingRateInMsg),
    bytes: text(found.dispatchThrottlingRateInByte),
    periodS: String(Math.max(1, found.ratePeriodInSecond ?? 1)),
    relative: found.relativeToPublishRate ? "yes" : "no",
  };
}

// The limit in force at a level as values of the fields, whatever set it.
function inForceValues(limits, level) {
  const found = limits?.find((each) => each.level === level && each.budgets.length && each.source !== "adaptive controller");
  if (!found) return {};
  const amounts = found.budgets.map(({ dimension, limit, abovePublishRate }) => [dimension, String(abovePublishRate ?? limit)]);
  return { ...Object.fromEntries(amounts), periodS: String(found.budgets[0].periodS), relative: found.relative ? "yes" : "no" };
}

function dispatch(id, name, make, level, limitsOf) {
  return {
    id, name, operation: "topic.policy.write", fields: DISPATCH_FIELDS, isReady: hasNumber, missing: MISSING, request: make,
    inForce: (context) => inForceValues(limitsOf(context), level),
    elsewhere: ({ report }) => effects.boundElsewhere({ level, reports: report.subscriptions ?? [report] }),
    currentPath: (context) => make({ ...context, values: {} }).path,
    currentValues: dispatchValues,
    effect: ({ values, whole, subscription }) =>
      effects.dispatchEffect({ values, level, reports: whole.subscriptions, limits: whole.limits, only: subscription }),
  };
}

const QUOTA_TYPES = [["destination_storage", "size of the backlog"], ["message_age", "age of the oldest message"]];
const QUOTA_POLICIES = [
  ["producer_request_hold", "producers wait"], ["producer_exception", "producers get an error"],
  ["consumer_backlog_eviction", "the oldest messages are removed"],
];

function quotaValues(found, { type }) {
  const quota = found?.[type];
  return quota && { limit: text(type === "message_age" ? quota.limitTime : quota.limitSize), policy: quota.policy };
}

export const TOPIC_ACTIONS = [
  dispatch("topic-dispatch", "Dispatch limit", requests.topicDispatch, "topic", ({ whole }) => whole.limits),
  dispatch("each-dispatch", "Dispatch limit of each subscription", requests.eachDispatch, "subscription",
    ({ whole }) => whole.subscriptions.flatMap(({ limits }) => limits).filter(({ source }) => source !== "subscription policy")),
  {
    id: "publish", name: "Publish limit", operation: "topic.policy.write", request: requests.publishLimit,
    isReady: hasNumber, missing: MISSING,
    fields: [
      CHANGE,
      { name: "messages", label: "Messages per second (empty: no limit)", kind: "number", when: isSet },
      { name: "bytes", label: "Bytes per second (empty: no limit)", kind: "number", when: isSet },
    ],
    inForce: ({ report }) => inForceValues(report.publishing.limits, "publish_topic"),
    elsewhere: ({ report }) => effects.heldProducers(report.publishing),
    currentPath: ({ topic }) => `admin/v2/${topicPath(topic)}/publishRate`,
    currentValues: (found) => found && { messages: text(found.publishThrottlingRateInMsg), bytes: text(found.publishThrottlingRateInByte) },
    effect: ({ values, report }) => effects.publishEffect({ values, publishing: report.publishing }),
  },
  {
    id: "quota", name: "Backlog quota", operation: "topic.policy.write", request: requests.backlogQuota,
    fields: [
      CHANGE,
      { name: "type", label: "Of", choices: QUOTA_TYPES, first: "destination_storage" },
      { name: "limit", label: "Bytes, or seconds of age", kind: "number", min: 1, isNeeded: true, when: isSet },
      { name: "policy", label: "At the quota", choices: QUOTA_POLICIES, first: "producer_request_hold", when: isSet },
    ],
    currentPath: ({ topic }) => `admin/v2/${topicPath(topic)}/backlogQuotaMap`,
    currentValues: quotaValues,
    reads: "type",
    effect: effects.quotaEffect,
  },
  { id: "unload", name: "Unload", operation: "topic.unload", fields: [], request: requests.unload, effect: effects.unloadEffect },
];

export const SUBSCRIPTION_ACTIONS = [
  dispatch("subscription-dispatch", "Dispatch limit", requests.subscriptionDispatch, "subscription", ({ report }) => report.limits),
  {
    id: "skip", name: "Skip messages", operation: "subscription.skip", request: requests.skip, isLossy: true,
    // Which partition would it be?
    isFor: ({ partitions }) => !partitions,
    fields: [{ name: "number", label: "Messages", kind: "number", first: "1", min: 1, isNeeded: true }],
    effect: effects.skipEffect,
  },
  { id: "clear", name: "Clear the backlog", operation: "subscription.skip", fields: [], request: requests.clear, isLossy: true, effect: effects.clearEffect },
  {
    id: "reset", name: "Reset", operation: "subscription.reset", request: requests.reset, isLossy: true,
    fields: [
      { name: "to", label: "To", choices: [["time", "a time"], ["earliest", "the oldest message kept"]], first: "time" },
      { name: "minutes", label: "Minutes back from now", kind: "number", first: "60", min: 0, isNeeded: true, when: ({ to }) => to !== "earliest" },
    ],
    effect: effects.resetEffect,
  },
  { id: "delete", name: "Delete", operation: "subscription.delete", fields: [], request: requests.remove, isLossy: true, isEnd: true, effect: effects.removeEffect },
];
