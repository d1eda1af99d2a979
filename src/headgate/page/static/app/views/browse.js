// Tenants, namespaces, topics: what exists, which policies hold, and single messages of a backlog.

import { html, useState } from "../../vendor/preact.js";
import { Refused, getMessage } from "../api.js";
import { count, quoted, shortTopic, topicPath, wholeTopic } from "../format.js";
import { Elsewhere, Freshness, Table } from "../parts.js";
import { link, setQuery, useAnswer } from "../state.js";
import { ByName } from "./by_name.js";
import { Policies, Schema } from "./policies.js";

function Names({ crumbs, title, path, everyS, to, empty }) {
  const answer = useAnswer(path, everyS);
  const rows = (answer.value ?? []).map((name) => ({ name, ...to(name) }));
  return html`<section class=${answer.isStale ? "is-stale" : ""}>
    ${crumbs && html`<${Crumbs} of=${crumbs} />`}
    <div class="title"><h1>${title}</h1><${Freshness} answer=${answer} everyS=${everyS} /></div>
    <${ByName} error=${answer.error} />
    ${answer.value && html`<${Table} rows=${rows} keyOf=${({ name }) => name} empty=${empty}
      columns=${[{ head: "Name", cell: ({ shown, href }) => html`<a class="name" href=${href}>${shown}</a>` }]} />`}
    <${Elsewhere} path=${path} /></section>`;
}

function Tenants({ everyS }) {
  return html`<${Names} title="Tenants" path="admin/v2/tenants" everyS=${everyS} empty="There is no tenant."
    to=${(name) => ({ shown: name, href: link(["browse", name]) })} />`;
}

function Namespaces({ tenant, everyS }) {
  return html`<${Names} crumbs=${[tenant]} title=${`Namespaces of ${tenant}`} everyS=${everyS} empty="It has no namespace."
    path=${`admin/v2/namespaces/${encodeURIComponent(tenant)}`}
    to=${(name) => ({ shown: name.split("/").at(-1), href: link(["browse", ...name.split("/")]) })} />`;
}

function Crumbs({ of }) {
  return html`<p class="crumbs"><a href=${link(["browse"])}>All tenants</a>
    ${of.map((name, at) => html`${" "}<span aria-hidden="true">›</span>${" "}<a href=${link(["browse", ...of.slice(0, at + 1)])}>${name}</a>`)}</p>`;
}

// The policies of a namespace that are set, as names and values.
export function setPolicies(policies) {
  return Object.entries(policies ?? {})
    .filter(([, value]) => value != null && value !== false && !(typeof value === "object" && !Object.keys(value).length))
    .map(([name, value]) => ({ name, value: typeof value === "object" ? JSON.stringify(value) : String(value) }));
}

function Namespace({ tenant, namespace, everyS }) {
  const base = `admin/v2/namespaces/${[tenant, namespace].map(encodeURIComponent).join("/")}`;
  const topics = useAnswer(`${base}/topics`, everyS);
  const partitioned = useAnswer(`admin/v2/persistent/${[tenant, namespace].map(encodeURIComponent).join("/")}/partitioned`, everyS);
  const policies = useAnswer(base, everyS);
  const whole = new Set(partitioned.value ?? []);
  const single = (topics.value ?? []).filter((name) => !whole.has(wholeTopic(name)));
  const rows = [...whole].map((name) => ({ name, kind: "partitioned" })).concat(single.map((name) => ({ name, kind: "" })));
  rows.sort((a, b) => (a.name < b.name ? -1 : 1));
  return html`<section class=${topics.isStale ? "is-stale" : ""}><${Crumbs} of=${[tenant, namespace]} />
    <div class="title"><h1>${tenant}/${namespace}</h1><${Freshness} answer=${topics} everyS=${everyS} /></div>
    <div class="halves"><div class="half"><h2>Topics</h2>
    <${Table} rows=${rows} keyOf=${({ name }) => name} empty="It has no topic." columns=${[
      { head: "Topic", cell: ({ name, kind }) => html`<a class="name" href=${link(["browse", tenant, namespace, name])}>${shortTopic(name).split("/").slice(2).join("/")}</a>
        ${kind && html`<small class="muted">${kind}</small>`}` },
    ]} /></div>
    <div class="half"><h2>Policies of the namespace</h2>
    <${Table} rows=${setPolicies(policies.value)} keyOf=${({ name }) => name} empty="No policy is set; the broker's settings hold."
      columns=${[{ head: "Policy", cell: ({ name }) => name }, { head: "Value", cell: ({ value }) => html`<code>${value}</code>` }]} /></div></div>
    <${Elsewhere} path=${base} command=${`headgate admin namespaces policies ${quoted(`${tenant}/${namespace}`)}`} /></section>`;
}

const SHOWN_BYTES = 2_000;

async function peek(topic, subscription, number) {
  const path = `admin/v2/${topicPath(topic)}/subscription/${encodeURIComponent(subscription)}/position/${number}`;
  return { number, ...(await getMessage(path)) };
}

function Peek({ topic, subscriptions, query }) {
  const subscription = query.get("subscription") || subscriptions[0] || "";
  const [found, setFound] = useState({ messages: [], error: null });
  const more = async () => {
    try {
      const message = await peek(topic, subscription, found.messages.length + 1);
      setFound({ messages: [...found.messages, message], error: null });
    } catch (error) {
      setFound({ ...found, error: error instanceof Refused ? error : new Refused(0, String(error)) });
    }
  };
  const choose = (event) => {
    setFound({ messages: [], error: null });
    setQuery("subscription", event.target.value);
  };
  if (!subscriptions.length) return html`<p class="muted">Without a subscription there is no backlog to look into.</p>`;
  return html`<p class="filters"><label>Subscription <select value=${subscription} onChange=${choose}>
      ${subscriptions.map((name) => html`<option value=${name}>${name}</option>`)}</select></label>
    <button type="button" onClick=${more}>${found.messages.length ? "Next message" : "First message of the backlog"}</button></p>
    ${found.error && html`<p role="alert" class="notice">${found.error.message}</p>`}
    ${found.messages.map(({ number, id, batchSize, properties, text, sizeBytes, published }) => html`<article class="card" key=${number}>
      <h3>${number}. <code>${id}</code> <small class="muted">${published ?? ""}, ${count(sizeBytes)} B${batchSize > 1 ? `, a batch of ${count(batchSize)} messages` : ""}</small></h3>
      ${Object.entries(properties).map(([name, value]) => html`<p><span class="muted">${name}</span> <code>${value}</code></p>`)}
      <pre>${text.slice(0, SHOWN_BYTES)}${text.length > SHOWN_BYTES ? "…" : ""}</pre></article>`)}`;
}

function TopicPolicies({ topic, everyS, query }) {
  const explained = useAnswer(`admin/v2/headgate/explain/${topicPath(topic)}`, everyS && Math.max(everyS, 15));
  const { value: report, error } = explained;
  const [, tenant, namespace] = topic.match(/:\/\/([^/]+)\/([^/]+)\//) ?? [];
  return html`<section class=${explained.isStale ? "is-stale" : ""}><${Crumbs} of=${[tenant, namespace]} />
    <div class="title"><h1 class="name">${shortTopic(topic)}</h1><${Freshness} answer=${explained} everyS=${everyS} /></div>
    ${error && html`<p class="notice" role="alert">${error.message}</p>`}
    <p><a href=${link(["topic", topic])}>What holds it back</a></p>
    <h2>Policies in force</h2>
    <${Policies} topic=${topic} everyS=${everyS} />
    <h2>Schema</h2>
    <${Schema} topic=${topic} everyS=${everyS} />
    <h2>Messages</h2>
    <${Peek} topic=${topic} subscriptions=${(report?.subscriptions ?? []).map((each) => each.subscription)} query=${query} />
    <${Elsewhere} path=${`admin/v2/${topicPath(topic)}/stats`} command=${`headgate admin topics stats ${quoted(topic)}`} /></section>`;
}

export function Browse({ parts, query, everyS }) {
  const [, tenant, namespace, topic] = parts;
  if (topic) return html`<${TopicPolicies} topic=${topic} everyS=${everyS} query=${query} />`;
  if (namespace) return html`<${Namespace} tenant=${tenant} namespace=${namespace} everyS=${everyS} />`;
  if (tenant) return html`<${Namespaces} tenant=${tenant} everyS=${everyS} />`;
  return html`<${Tenants} everyS=${everyS} />`;
}
