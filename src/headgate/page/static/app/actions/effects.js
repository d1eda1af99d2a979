// What an action will probably change, from what explain knows. Pure; each answer is a list of
// sentences, and what is not known is said to be not known.

import { bytes, count, duration, plural, rate } from "../format.js";

const SHOWN = 3;

const given = (text) => String(text ?? "").trim() !== "" && Number(text) > 0;

// The most messages per second that a limit lets through; Infinity without one, null if it cannot be told.
function capPerS({ messages, bytes: size, periodS, relative }, report) {
  const period = Math.max(1, Number(periodS) || 1);
  const caps = [];
  if (given(messages)) caps.push(Number(messages) / period);
  if (given(size)) {
    if (!report.backlogMessages || !report.backlogBytes) return null;
    caps.push(Number(size) / period / (report.backlogBytes / report.backlogMessages));
  }
  const cap = Math.min(Infinity, ...caps);
  return relative === "yes" && cap < Infinity ? cap + report.minute.appendedPerS : cap;
}

function heldByAnother(report, causes) {
  const { verdict } = report;
  if (verdict === "CONSUMER") return "its consumers are the bottleneck, so another limit changes nothing for it";
  if (verdict === "NO_CONSUMER") return "no consumer is connected, so a limit changes nothing for it";
  if (verdict.startsWith("THROTTLED_") && !causes.includes(verdict) && report.limit) {
    return `the ${report.limit.level} limit of ${report.limit.text} (${report.limit.source}) holds it, so this one alone changes little`;
  }
  return "";
}

function pace(report, perS) {
  const net = perS - report.minute.appendedPerS;
  if (net <= 0.01 * Math.max(1, perS)) {
    return `the backlog would still grow by about ${rate(-net)} msg/s: messages come in at ${rate(report.minute.appendedPerS)} msg/s`;
  }
  if (!report.backlogMessages) return "no backlog would build up";
  return `the backlog of ${count(report.backlogMessages)} would shrink by about ${rate(net)} msg/s and be gone in ${duration(report.backlogMessages / net)}`;
}

function ofSubscription(report, cap, causes) {
  const inPerS = report.minute?.appendedPerS;
  const proven = report.provenAckPerS;
  if (inPerS == null || cap == null) return "the effect is not known, because the account has no rates yet";
  if (cap < inPerS) {
    const out = Math.min(cap, proven ?? cap);
    return `the limit lets ${rate(cap)} msg/s through and ${rate(inPerS)} msg/s come in, so the backlog would grow by about ${rate(inPerS - out)} msg/s`;
  }
  const other = heldByAnother(report, causes);
  if (other) return other;
  if (!causes.includes(report.verdict)) return "nothing holds it now, and this limit would not either";
  const shown = proven != null ? `its consumers have shown ${rate(proven)} msg/s, so ` : "";
  if (proven != null) return shown + pace(report, Math.min(cap, proven));
  if (cap < Infinity) {
    return `if its consumers keep up, which they had no chance to show yet, ${pace(report, cap)}`;
  }
  return `the backlog would shrink if its consumers take more than the ${rate(inPerS)} msg/s that come in; they had no chance to show their rate yet`;
}

// Of a dispatch limit. ``reports`` are those of the subscriptions under it, ``causes`` the verdicts
// that blame a limit of its level.
export function dispatchEffect({ values, reports, causes, isShared, isOwn }) {
  const isRemoved = values.change === "remove" || !(given(values.messages) || given(values.bytes));
  const said = [];
  const worst = [...reports].sort((a, b) => b.backlogMessages - a.backlogMessages).slice(0, SHOWN);
  for (const report of worst) {
    const own = !isShared && !isOwn && report.limits?.find(({ source }) => source === "subscription policy");
    const cap = isRemoved ? Infinity : capPerS(values, report);
    said.push(`${report.subscription}: ${own
      ? `it has a limit of its own, ${own.budgets.map(({ text }) => text).join(" and ")}, which stays in force`
      : ofSubscription(report, cap, causes)}.`);
  }
  if (!reports.length) said.push("The topic has no subscription: nothing changes now.");
  if (reports.length > SHOWN) said.push(`And ${plural(reports.length - SHOWN, "more subscription")}.`);
  if (isShared && !isRemoved && reports.length > 1) {
    said.push(`${plural(reports.length, "subscription")} share this limit, so each may get less than is said here.`);
  }
  if (isRemoved) said.push("If the namespace or the broker sets such a limit, that one holds then.");
  return said;
}

export function publishEffect({ values, publishing }) {
  const { messagesPerS, bytesPerS } = publishing;
  const now = `Producers send ${rate(messagesPerS)} msg/s and ${count(bytesPerS)} B/s now`;
  if (values.change === "remove" || !(given(values.messages) || given(values.bytes))) {
    return [`${now}. Without this limit they may send more, unless the namespace or the broker sets one.`];
  }
  const over = [];
  if (given(values.messages) && messagesPerS > Number(values.messages)) over.push(`${rate(Number(values.messages))} msg/s`);
  if (given(values.bytes) && bytesPerS > Number(values.bytes)) over.push(`${count(Number(values.bytes))} B/s`);
  if (over.length) return [`${now}: they would wait, because only ${over.join(" and ")} would be let through.`];
  return [`${now}, so the limit would hold nobody back at once.`];
}

const AT_THE_QUOTA = {
  producer_request_hold: "producers would wait at once",
  producer_exception: "producers would get an error at once",
  consumer_backlog_eviction: "the oldest messages would be removed from the backlogs at once, and nobody would get them",
};

export function quotaEffect({ values, report }) {
  const isAge = values.type === "message_age";
  const show = isAge ? duration : bytes;
  const backlogs = report.subscriptions;
  const measured = report.quotas.find((quota) => quota.type === (isAge ? "age" : "size"))?.used;
  const used = measured ?? Math.max(0, ...backlogs.map((each) => (isAge ? each.oldestAgeS : each.backlogBytes)));
  const now = isAge ? `The oldest message waits for ${show(used)}` : `The largest backlog has ${show(used)}`;
  if (values.change === "remove") return [`${now}. The quota of the namespace or the broker holds then, if there is one.`];
  if (!given(values.limit)) return [`${now}. Without a number there is no quota of this type.`];
  const limit = Number(values.limit);
  if (used >= limit) return [`${now}, which is more than ${show(limit)}: ${AT_THE_QUOTA[values.policy]}.`];
  return [`${now}, ${Math.round((100 * used) / limit)} % of ${show(limit)}: nothing changes at once.`];
}

export function unloadEffect() {
  return ["Producers and consumers of the topic are disconnected; their clients come back within seconds by themselves.",
    "Messages that consumers hold without an acknowledgement are delivered again. Nothing that was acknowledged to a producer is lost."];
}

export function skipEffect({ values, report }) {
  const waiting = report.backlogMessages;
  const skipped = Math.min(waiting, Math.max(1, Number(values.number) || 1));
  return [`${count(skipped)} of ${plural(waiting, "waiting message")} would not be delivered to this subscription, ${count(waiting - skipped)} would stay.`,
    "A reset brings them back only as long as the topic keeps them."];
}

export function clearEffect({ report }) {
  return [`All ${plural(report.backlogMessages, "waiting message")} (${bytes(report.backlogBytes)}) would not be delivered to this subscription.`,
    "A reset brings them back only as long as the topic keeps them."];
}

export function resetEffect({ values, report }) {
  const age = report.oldestAgeS;
  const seconds = 60 * Math.max(0, Number(values.minutes) || 0);
  const again = "Its consumers are disconnected and come back by themselves.";
  if (values.to === "earliest") return ["Every message that the topic still keeps would be delivered again.", again];
  if (report.backlogMessages && seconds < age) {
    return [`The oldest waiting message is ${duration(age)} old: what is older than ${duration(seconds)} would not be delivered.`, again];
  }
  return [`Messages of the last ${duration(seconds)} that the topic still keeps would be delivered again.`, again];
}

export function removeEffect({ report }) {
  const said = [`Its backlog of ${plural(report.backlogMessages, "message")} (${bytes(report.backlogBytes)}) ends with it, and its place in the topic. This cannot be undone.`];
  if (report.consumers) said.push(`${plural(report.consumers, "consumer is", "consumers are")} connected, so the broker will refuse it: close them first.`);
  else said.push("What only this subscription kept on the disk is freed, and counts for no quota any more.");
  return said;
}
