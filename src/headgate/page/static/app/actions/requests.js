// What an action sends: method, path, body, and the same as commands. Pure: no state, no network.

import { curlWords, quoted, topicPath } from "../format.js";

// A field's text as a whole number; -1, which is no limit, if it is empty.
function limitOf(text) {
  return String(text ?? "").trim() === "" ? -1 : Number(text);
}

function subscriptionPath({ topic, subscription }) {
  return `admin/v2/${topicPath(topic)}/subscription/${encodeURIComponent(subscription)}`;
}

function flags(pairs) {
  return pairs.filter(([, value]) => value !== "" && value != null && value !== -1)
    .flatMap(([name, value]) => [name, String(value)]);
}

function request(method, path, body, words) {
  return { method, path, body, words };
}

// Sets or removes a policy of a topic; ``noun`` is its part of pulsar-admin's verbs.
function policy(path, query, noun, { topic, values }, body, given, kept = []) {
  const target = `${path}${query ? `?${query}` : ""}`;
  if (values.change === "remove") {
    return request("DELETE", target, undefined, ["topicPolicies", `remove-${noun}`, topic, ...kept]);
  }
  return request("POST", target, body, ["topicPolicies", `set-${noun}`, topic, ...flags(given), ...kept]);
}

function dispatchLimit(path, noun, context, kept) {
  const { values } = context;
  const messages = limitOf(values.messages);
  const bytes = limitOf(values.bytes);
  const periodS = Math.max(1, limitOf(values.periodS));
  const isRelative = values.relative === "yes";
  const body = {
    dispatchThrottlingRateInMsg: messages,
    dispatchThrottlingRateInByte: bytes,
    relativeToPublishRate: isRelative,
    ratePeriodInSecond: periodS,
  };
  const given = [["-md", messages], ["-bd", bytes], ["-dt", periodS]];
  const more = isRelative && values.change !== "remove" ? ["-rp"] : [];
  return policy(path, "", noun, context, body, given, [...more, ...kept]);
}

export function topicDispatch(context) {
  return dispatchLimit(`admin/v2/${topicPath(context.topic)}/dispatchRate`, "dispatch-rate", context, []);
}

export function eachDispatch(context) {
  const path = `admin/v2/${topicPath(context.topic)}/subscriptionDispatchRate`;
  return dispatchLimit(path, "subscription-dispatch-rate", context, []);
}

export function subscriptionDispatch(context) {
  const { topic, subscription } = context;
  const path = `admin/v2/${topicPath(topic)}/${encodeURIComponent(subscription)}/dispatchRate`;
  return dispatchLimit(path, "subscription-dispatch-rate", context, ["-s", subscription]);
}

export function publishLimit(context) {
  const messages = limitOf(context.values.messages);
  const bytes = limitOf(context.values.bytes);
  const body = { publishThrottlingRateInMsg: messages, publishThrottlingRateInByte: bytes };
  const path = `admin/v2/${topicPath(context.topic)}/publishRate`;
  return policy(path, "", "publish-rate", context, body, [["-m", messages], ["-b", bytes]]);
}

export function backlogQuota(context) {
  const { type, limit, policy: action } = context.values;
  const value = limitOf(limit);
  const isAge = type === "message_age";
  const body = { limitSize: isAge ? -1 : value, limitTime: isAge ? value : -1, policy: action };
  const given = [[isAge ? "-lt" : "-l", value], ["-p", action]];
  const path = `admin/v2/${topicPath(context.topic)}/backlogQuota`;
  return policy(path, `backlogQuotaType=${type}`, "backlog-quota", context, body, given, ["-t", type]);
}

export function unload({ topic }) {
  return request("PUT", `admin/v2/${topicPath(topic)}/unload`, undefined, ["topics", "unload", topic]);
}

export function skip(context) {
  const number = Math.max(1, limitOf(context.values.number));
  return request("POST", `${subscriptionPath(context)}/skip/${number}`, undefined,
    ["topics", "skip", context.topic, "-s", context.subscription, "-n", String(number)]);
}

export function clear(context) {
  return request("POST", `${subscriptionPath(context)}/skip_all`, undefined,
    ["topics", "clear-backlog", context.topic, "-s", context.subscription]);
}

const EARLIEST = { ledgerId: -1, entryId: -1, partitionIndex: -1 };
const MINUTE_MS = 60_000;

// Back in time, or to the oldest message that is stored.
export function reset(context) {
  const { topic, subscription, values, nowMs } = context;
  const path = `${subscriptionPath(context)}/resetcursor`;
  const words = ["topics", "reset-cursor", topic, "-s", subscription];
  if (values.to === "earliest") return request("POST", path, EARLIEST, [...words, "-m", "earliest"]);
  const minutes = Math.max(0, limitOf(values.minutes));
  return request("POST", `${path}/${nowMs - minutes * MINUTE_MS}`, undefined, [...words, "-t", `${minutes}m`]);
}

export function remove(context) {
  return request("DELETE", `${subscriptionPath(context)}?force=false`, undefined,
    ["topics", "unsubscribe", context.topic, "-s", context.subscription]);
}

// The same as a command of headgate; ``root`` is the address of the admin API.
export function commandOf({ words }, root) {
  return ["headgate", "admin", "--admin-url", root.replace(/\/$/, ""), ...words].map(quoted).join(" ");
}

// The same request for curl; ``url`` is the full address. The token stays out of the command.
export function curlOf({ method, body }, url, needsToken) {
  const words = [...curlWords(url), "-X", method];
  if (body !== undefined) words.push("-H", "Content-Type: application/json", "-d", JSON.stringify(body));
  const text = [...words, url].map(quoted).join(" ");
  return needsToken ? `${text} -H "Authorization: Bearer $TOKEN"` : text;
}
