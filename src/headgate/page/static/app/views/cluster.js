// The clusters that an agent watches: whether each answers, what is seen of it, and what it is asked.

import { html } from "../../vendor/preact.js";
import { CAUSES } from "../causes.js";
import { clusterAddress, followCluster, lateness } from "../clusters.js";
import { bytes, count, duration, plural, rate } from "../format.js";
import { Elsewhere, Figure, Figures, Freshness, Legend, NotSeen, UseBar, Verdict } from "../parts.js";
import { link, useAnswer } from "../state.js";

function ago(seconds) {
  return seconds == null ? "never" : `${duration(Math.round(seconds))} ago`;
}

function Reach({ cluster, late }) {
  if (late) return html`<p class="notice" role="alert" aria-live="off">${late}${cluster.looks ? ". The figures are those of the last looks." : ""}</p>`;
  if (cluster.reachable == null) return html`<p class="muted">No answer yet: the agent has just begun to ask.</p>`;
  return html`<p>It has answered for ${duration(Math.round(cluster.reachableSinceS))}.</p>`;
}

// A link to a view of a cluster.
function To({ cluster, view, query, children }) {
  const hash = link([view], query);
  return html`<a href=${clusterAddress(cluster, hash)} onClick=${followCluster(cluster, hash)}>${children}</a>`;
}

function Verdicts({ cluster, totals }) {
  const found = CAUSES.filter(([cause]) => totals.verdicts[cause]);
  if (!found.length) return html`<p class="muted">No subscription has a backlog.</p>`;
  return html`<p class="verdicts">${found.map(([cause]) => html`
      <${To} key=${cause} cluster=${cluster} view="now" query=${{ verdict: cause }}>
        <${Verdict} cause=${cause} inferred /> ${count(totals.verdicts[cause])}<//>`)}
    ${totals.withBacklog > totals.judged && html`<small class="muted">of the ${plural(totals.judged, "largest backlog")}</small>`}</p>`;
}

function requestsNote({ allowedPerS, statedPerS, isSlowed, halved }) {
  if (isSlowed) return `slowed to ${count(allowedPerS)}/s of ${count(statedPerS)}/s`;
  return `of ${count(statedPerS)}/s${halved ? `; slowed ${plural(halved, "time")} before` : ""}`;
}

function Card({ cluster }) {
  const { cluster: name, totals, requests, brokersAway } = cluster;
  const late = lateness(cluster);
  const seen = (value) => count(cluster.looks || cluster.lastSurveyAgeS != null ? value : null);
  return html`<article class="card ${late ? "is-late" : ""}">
    <h2 class="name">${name}</h2>
    <${Reach} cluster=${cluster} late=${late} />
    <${Figures}>
      <${Figure} name="Last look" value=${cluster.looks ? ago(cluster.lastLookAgeS) : "never"} note=${cluster.looksFailed ? `${count(cluster.looksFailed)} of ${count(cluster.looks + cluster.looksFailed)} failed` : null} />
      <${Figure} name="Last survey" value=${ago(cluster.lastSurveyAgeS)} />
      <${Figure} name="Brokers" value=${count(cluster.brokers)} note=${cluster.brokers == null ? "the cluster does not tell" : brokersAway.length ? `${count(brokersAway.length)} of them away` : null} />
      <${Figure} name="Topics" value=${seen(cluster.topics)} note=${cluster.topicsLeftOut ? `${count(cluster.topicsLeftOut)} left out` : null} />
      <${Figure} name="Subscriptions" value=${seen(totals.subscriptions)} />
      <${Figure} name="With a backlog" value=${seen(totals.withBacklog)} />
      <${Figure} name="Messages in backlogs" value=${seen(totals.backlogMessages)} note=${totals.backlogMessages && totals.backlogBytes != null ? bytes(totals.backlogBytes) : null} />
      <${Figure} name="Requests" value=${requests.perS == null ? count(null) : `${rate(requests.perS)}/s`} note=${requestsNote(requests)} />
    <//>
    <p class="muted">Of its request budget it uses <${UseBar} use=${requests.perS == null ? null : requests.perS / requests.statedPerS} /></p>
    ${cluster.looks > 0 && html`<${Verdicts} cluster=${name} totals=${totals} />`}
    ${totals.quotasNear > 0 && html`<p><${To} cluster=${name} view="storage"><span class="alarm">${plural(totals.quotasNear, "backlog quota")} reached, or within a day of it</span><//></p>`}
    ${brokersAway.map(({ broker, awayS, reason }) => html`<p key=${broker} class="notice">Broker ${broker} has not answered for ${duration(Math.round(awayS))}: ${reason}</p>`)}
    <${NotSeen} list=${cluster.notSeen} />
    <p><${To} cluster=${name} view="now">Backlogs of ${name}<//></p>
  </article>`;
}

function Cluster({ everyS }) {
  const path = "admin/v2/headgate/clusters?totals=true";
  const answer = useAnswer(path, everyS);
  const found = answer.value ?? [];
  return html`<section class=${answer.isStale ? "is-stale" : ""}>
    <div class="title"><h1>${found.length > 1 ? "Clusters" : "Cluster"}</h1><${Freshness} answer=${answer} everyS=${everyS} /></div>
    <div class="cards">${found.map((cluster) => html`<${Card} key=${cluster.cluster} cluster=${cluster} />`)}</div>
    <${Legend} />
    <${Elsewhere} path=${path} promql="headgate_agent_last_look_age_seconds" />
  </section>`;
}

export const VIEWS = [{ path: "cluster", name: "Cluster", view: Cluster }];
