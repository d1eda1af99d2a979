// What an action will probably change, from what explain knows. Pure; each answer is a list of
// sentences, and what is not known is said to be not known.

import { bytes, count, duration, plural, rate } from "../format.js";

const SHOWN = 3;

const given = (text) => String(text ?? "").trim() !== "" && Number(text) > 0;

const isRemoved = ({ change, messages, bytes: size }) => change === "remove" || !(given(messages) || given(size));

function enteredBudgets(values) {
  if (isRemoved(values)) return [];
  const periodS = Math.max(1, Number(values.periodS) || 1);
  return ["messages", "bytes"].filter((dimension) => given(values[dimension]))
    .map((dimension) => ({ dimension, limit: Number(values[dimension]), periodS }));
}

// Messages per second that ``budgets`` let through: Infinity without any, NaN if that cannot be told.
function capPerS(budgets, messageBytes) {
  return Math.min(Infinity, ...budgets.map(({ dimension, limit, periodS }) =>
    limit / periodS / (dimension === "bytes" ? messageBytes : 1)));
}

const leavesOf = ({ level, text, source }) => `the ${level} limit of ${text} (${source}) leaves it`;

// The limits in force at one level, which each partition has for itself.
function inForce(limits = [], level, messageBytes) {
  const found = limits.filter((each) => each.level === level && each.budgets.length);
  if (!found.length) return { perS: Infinity };
  const text = found[0].budgets.map((budget) => budget.text).join(" and ");
  return {
    perS: found.reduce((sum, { budgets }) => sum + (capPerS(budgets, messageBytes) || Infinity), 0),
    leaves: leavesOf({ level, text, source: found[0].source }),
  };
}

// What each gets of ``total``: those that need less than an equal share leave the rest to the others.
export function fairShares(total, needs) {
  if (total === Infinity) return needs;
  const shares = [];
  let left = total;
  [...needs.keys()].sort((a, b) => needs[a] - needs[b]).forEach((at, done) => {
    shares[at] = Math.min(needs[at], left / (needs.length - done));
    left -= shares[at];
  });
  return shares;
}

// At what rate the consumers can take messages, as far as is known.
function consumerBound({ verdict, consumers, minute, provenAckPerS: proven }) {
  const who = consumers === 1 ? "the consumer" : "its consumers";
  if (verdict === "NO_CONSUMER") return { perS: 0 };
  if (verdict === "BROKER") return { perS: minute.ackedPerS, leaves: "the broker itself is slow and leaves it" };
  if (verdict === "CONSUMER") return { perS: minute.ackedPerS, leaves: `${who} ${consumers === 1 ? "acknowledges" : "acknowledge"}` };
  if (proven == null) return { perS: Infinity };
  return { perS: Math.max(proven, minute.ackedPerS), leaves: `${who} ${consumers === 1 ? "has" : "have"} shown` };
}

// What each subscription of a topic would get: the lowest of what its consumers take, this limit and
// the other limits in force. ``leaves`` names the one that decides; none does where all that comes in
// gets through. ``only`` is the subscription whose own limit it is.
export function predicted({ values, reports, limits, level, only }) {
  const entered = enteredBudgets(values);
  const sum = (list, of) => list.reduce((total, each) => total + of(each), 0);
  const size = sum(reports, (each) => each.backlogBytes) / sum(reports, (each) => each.backlogMessages) || NaN;
  const active = reports.filter(({ verdict, minute }) => verdict !== "NO_CONSUMER" && minute);
  if (Number.isNaN(capPerS(entered, size))) return active.map(({ subscription }) => ({ subscription, perS: NaN }));
  const isShared = level === "topic" && active.length > 1;
  const cap = (under, partitions) => capPerS(entered, size) * (partitions || 1)
    + (values.relative === "yes" ? sum(under, ({ minute }) => minute.appendedPerS) : 0);
  const broker = inForce(limits, "broker", size);
  const bounds = active.map((report) => {
    const isKept = level === "topic" || (only ? report.subscription !== only : ownLimit(report));
    return [
      consumerBound(report),
      isKept ? inForce(report.limits, "subscription", size) : { perS: cap([report], report.partitions), leaves: "the limit lets" },
      // How much of it other topics take shows in what the subscription gets now.
      report.verdict === "THROTTLED_BROKER" ? { perS: report.minute.ackedPerS, leaves: leavesOf(report.limit) } : broker,
      ...(["NONE", "SETTLING"].includes(report.verdict) ? [{ perS: report.minute.appendedPerS }] : []),
    ].reduce((low, each) => (low.perS <= each.perS ? low : each));
  });
  const topic = level === "topic"
    ? { perS: cap(active, reports[0]?.partitions), leaves: isShared ? "its share of this limit is" : "the limit lets" }
    : inForce(limits, "topic", size);
  const shares = fairShares(topic.perS, bounds.map(({ perS }) => perS));
  return active.map(({ subscription }, at) => ({
    subscription, ...(shares[at] < bounds[at].perS ? { ...topic, perS: shares[at] } : bounds[at]),
  }));
}

const ownLimit = (report) => report.limits?.find(({ source }) => source === "subscription policy");

function ofSubscription(report, found) {
  if (report.verdict === "NO_CONSUMER") return "no consumer is connected, so a limit changes nothing for it";
  const inPerS = report.minute?.appendedPerS;
  if (inPerS == null || !(found.perS >= 0)) return "the effect is not known, because the account has no rates yet";
  if (found.perS === Infinity) {
    return `the backlog would shrink if its consumers take more than the ${rate(inPerS)} msg/s that come in; they had no chance to show their rate yet`;
  }
  if (!found.leaves) return "nothing holds it now, and this limit would not either";
  const net = found.perS - inPerS;
  const through = found.leaves.endsWith("lets") ? " through" : "";
  const why = `${found.leaves} ${rate(found.perS)} msg/s${through} and ${rate(inPerS)} msg/s come in, so `;
  const isSteady = Math.abs(net) <= 0.01 * Math.max(1, found.perS);
  if (isSteady) return `${why}the backlog would stay about as it is`;
  if (net < 0) return `${why}the backlog would grow by about ${rate(-net)} msg/s`;
  const isShown = report.provenAckPerS != null || report.verdict === "CONSUMER";
  if (!report.backlogMessages) return `${why}no backlog would build up`;
  return `${why}the backlog of ${count(report.backlogMessages)} would shrink by about ${rate(net)} msg/s and be gone in ${duration(report.backlogMessages / net)}${
    isShown ? "" : ", if its consumers keep up: they had no chance to show their rate yet"}`;
}

// Of a dispatch limit. ``reports`` are those of all subscriptions of the topic, ``limits`` the topic's.
export function dispatchEffect({ values, reports, limits, level, only }) {
  const said = [];
  const under = only ? reports.filter(({ subscription }) => subscription === only) : reports;
  const worst = [...under].sort((a, b) => b.backlogMessages - a.backlogMessages).slice(0, SHOWN);
  const rates = predicted({ values, reports, limits, level, only });
  for (const report of worst) {
    const own = level !== "topic" && !only && ownLimit(report);
    said.push(`${report.subscription}: ${own
      ? `it has a limit of its own, ${own.budgets.map(({ text }) => text).join(" and ")}, which stays in force`
      : ofSubscription(report, rates.find(({ subscription }) => subscription === report.subscription))}.`);
  }
  if (!under.length) said.push("The topic has no subscription: nothing changes now.");
  if (under.length > SHOWN) said.push(`And ${plural(under.length - SHOWN, "more subscription")}.`);
  if (level === "topic" && !isRemoved(values) && rates.length > 1) {
    said.push(`${plural(rates.length, "subscription")} share this limit; what one does not need goes to the others.`);
  }
  const partitions = reports[0]?.partitions;
  if (partitions && !isRemoved(values)) said.push(`Each of ${plural(partitions, "partition")} has this limit for itself; they are taken to have equal shares.`);
  if (isRemoved(values)) said.push("If the namespace or the broker sets such a limit, that one holds then.");
  return said;
}

// The limit of another level that holds the largest backlog: what to say before a number is entered,
// and the broker's setting if it is one.
export function boundElsewhere({ reports, level }) {
  const held = reports.find(({ verdict, limit }) => verdict.startsWith("THROTTLED_") && limit && limit.level !== level);
  if (!held) return null;
  const { level: other, text, source } = held.limit;
  return {
    sentence: `The ${other} limit of ${text} (${source}) holds ${held.subscription}, so this limit alone changes little.`,
    setting: /^broker setting (\w+)$/.exec(source)?.[1],
  };
}

const sentNow = ({ messagesPerS, bytesPerS }) => `Producers send ${rate(messagesPerS)} msg/s and ${count(bytesPerS)} B/s now`;

// A wait that is over within seconds does not count.
const HELD_S_MIN = 6;

// What holds producers back now, which is to say before a number is entered.
export function heldProducers(publishing) {
  const held = publishing.parked?.find(({ minuteS, producers }) => producers && minuteS >= HELD_S_MIN);
  if (!held) return null;
  const why = `${held.cause.replaceAll("_", " ")}${held.limit ? `, ${held.limit.text}` : ""}`;
  return { sentence: `${sentNow(publishing)} and are held (${why}): what they would send is not known.`, isOwn: held.cause === "topic_rate" };
}

export function publishEffect({ values, publishing }) {
  const { messagesPerS, bytesPerS } = publishing;
  const now = sentNow(publishing);
  const held = heldProducers(publishing);
  if (isRemoved(values)) {
    return [held && !held.isOwn ? "What holds them stays."
      : `${held ? "" : `${now}. `}Without this limit they may send more, unless the namespace or the broker sets one.`];
  }
  const caps = [];
  if (given(values.messages)) caps.push([messagesPerS, Number(values.messages), `${rate(Number(values.messages))} msg/s`]);
  if (given(values.bytes)) caps.push([bytesPerS, Number(values.bytes), `${count(Number(values.bytes))} B/s`]);
  const over = caps.filter(([is, cap]) => is > cap);
  const texts = (list) => list.map(([, , text]) => text).join(" and ");
  if (held) {
    return [over.length ? `Only ${texts(over)} would be let through.`
      : held.isOwn ? `Up to ${texts(caps)} would be let through.` : "This limit changes nothing as long as that holds them."];
  }
  if (over.length) return [`${now}: they would wait, because only ${texts(over)} would be let through.`];
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
