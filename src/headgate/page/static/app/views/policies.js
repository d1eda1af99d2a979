// The policies in force for a topic in words, each with where it is set, and its schema.

import { html } from "../../vendor/preact.js";
import { UNKNOWN, bytes, count, duration, instant, topicPath, topicParts } from "../format.js";
import { useAnswer } from "../state.js";

const LEAST_S = 15;
const SHOWN_CHARACTERS = 2_000;

function rateText(rate, kind) {
  const parts = [];
  const messages = rate[`${kind}ThrottlingRateInMsg`];
  const size = rate[`${kind}ThrottlingRateInByte`];
  if (messages > 0) parts.push(`${count(messages)} msg`);
  if (size > 0) parts.push(`${count(size)} B`);
  if (!parts.length) return "";
  const period = rate.ratePeriodInSecond > 1 ? ` per ${duration(rate.ratePeriodInSecond)}` : "/s";
  return parts.map((each) => each + period).join(" and ") + (rate.relativeToPublishRate ? ", above the publish rate" : "");
}

function quotasText({ destination_storage: size, message_age: age }) {
  return [size?.limitSize > 0 && `${bytes(size.limitSize)}, ${size.policy}`, age?.limitTime > 0 && `${duration(age.limitTime)}, ${age.policy}`]
    .filter(Boolean).join("; ");
}

function retentionText({ retentionTimeInMinutes: minutes, retentionSizeInMB: size }) {
  if (!minutes || !size) return "";
  return `${minutes < 0 ? "any age" : `up to ${duration(60 * minutes)}`}, ${size < 0 ? "any size" : `up to ${bytes(size * 1024 * 1024)}`}`;
}

function delayText({ active, maxDeliveryDelayInMillis: mostMs }) {
  if (!active) return "off";
  return mostMs > 0 ? `up to ${duration(mostMs / 1000)}` : "any delay";
}

// The route below a topic, the name, the field of a namespace's policies, and the value in words; "" where it sets nothing.
const POLICIES = [
  ["dispatchRate", "Dispatch limit of the topic", "topicDispatchRate", (rate) => rateText(rate, "dispatch")],
  ["subscriptionDispatchRate", "Dispatch limit of each subscription", "subscriptionDispatchRate", (rate) => rateText(rate, "dispatch")],
  ["publishRate", "Publish limit", "publishMaxMessageRate", (rate) => rateText(rate, "publish")],
  ["backlogQuotaMap", "Backlog quotas", "backlog_quota_map", quotasText],
  ["retention", "Retention after the acknowledgement", "retention_policies", retentionText],
  ["messageTTL", "Message TTL", "message_ttl_in_seconds", (seconds) => (seconds > 0 ? duration(seconds) : "")],
  ["delayedDelivery", "Delayed delivery", "delayed_delivery_policies", delayText],
];

const isSet = (value) => value != null && (typeof value !== "object" || Object.keys(value).length > 0);

// The most specific place that sets a policy. What the role may not read of the namespace is not known.
function sourceOf(own, ofNamespace, field, text) {
  if (isSet(own.value)) return "topic policy";
  if (own.error || ofNamespace.error || (!ofNamespace.value && text)) return UNKNOWN;
  if (isSet(ofNamespace.value?.[field])) return "namespace policy";
  return text ? "broker setting" : "nowhere";
}

function Policy({ topic, policy: [route, name, field, words], namespace, everyS }) {
  const path = `admin/v2/${topicPath(topic)}/${route}`;
  const applied = useAnswer(`${path}?applied=true`, everyS);
  const own = useAnswer(path, everyS);
  const text = isSet(applied.value) ? words(applied.value) : "";
  const isKnown = applied.atMs > 0 && own.atMs + (own.error ? 1 : 0) > 0;
  return html`<tr><td data-head="Policy">${name}</td>
    <td data-head="In force">${applied.error ? applied.error.message : !isKnown ? UNKNOWN : text || "none"}</td>
    <td data-head="Set where">${isKnown ? sourceOf(own, namespace, field, text) : UNKNOWN}</td></tr>`;
}

export function Policies({ topic, everyS }) {
  const slowS = everyS && Math.max(everyS, LEAST_S);
  const { tenant, namespace } = topicParts(topic);
  const ofNamespace = useAnswer(`admin/v2/namespaces/${[tenant, namespace].map(encodeURIComponent).join("/")}`, slowS);
  return html`<div class="scroll"><table>
    <thead><tr>${["Policy", "In force", "Set where"].map((head) => html`<th scope="col">${head}</th>`)}</tr></thead>
    <tbody>${POLICIES.map((policy) => html`<${Policy} key=${policy[0]} topic=${topic} policy=${policy} namespace=${ofNamespace} everyS=${slowS} />`)}</tbody>
  </table></div>`;
}

// The newest version of the schema that producers and consumers of a topic share.
export function Schema({ topic, everyS }) {
  const [, ...name] = topicPath(topic).split("/");
  const { value, error } = useAnswer(`admin/v2/schemas/${name.join("/")}/schema`, everyS && Math.max(everyS, LEAST_S));
  if (error) return html`<p class="muted">${error.status === 404 ? "It has no schema." : error.message}</p>`;
  if (!value) return html`<p class="muted">${UNKNOWN}</p>`;
  const text = value.data ?? "";
  return html`<p>${value.type}, version ${value.version}${value.timestamp ? `, since ${instant(new Date(value.timestamp).toISOString())}` : ""}</p>
    ${text && html`<pre>${text.slice(0, SHOWN_CHARACTERS)}${text.length > SHOWN_CHARACTERS ? "…" : ""}</pre>`}`;
}
