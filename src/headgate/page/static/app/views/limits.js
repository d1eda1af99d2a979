// Every limit in force: what is used of it, what waits for it, and where it is set.

import { html } from "../../vendor/preact.js";
import { count, plural } from "../format.js";
import { Elsewhere, Figure, Figures, Freshness } from "../parts.js";
import { useAnswer } from "../state.js";
import { LimitsTable } from "./topic.js";

const COUNT = 200;

export function Limits({ everyS }) {
  const path = `admin/v2/headgate/limits?count=${COUNT}`;
  const answer = useAnswer(path, everyS);
  const limits = answer.value?.limits ?? [];
  const holding = limits.filter(({ waiters }) => waiters > 0);
  const once = limits.filter(({ waiters, waitingS }) => !waiters && waitingS > 0);
  const never = limits.filter(({ waiters, waitingS }) => !waiters && !waitingS);
  const groups = [
    ["Something waits for them now", holding, "Nothing waits for a limit now."],
    ["They have held something since their topic was loaded", once, "None."],
    ["They have never held anything", never, "None."],
  ];
  return html`<section class=${answer.isStale ? "is-stale" : ""}>
    <div class="title"><h1>Limits in force</h1><${Freshness} answer=${answer} everyS=${everyS} /></div>
    ${answer.value && html`<${Figures}>
        <${Figure} name="Limits" value=${count(answer.value.limitsTotal)} />
        <${Figure} name="Hold now" value=${count(holding.length)} />
      <//>
      ${groups.map(([title, found, empty]) => html`<h2>${title}</h2>
        <${LimitsTable} limits=${found} empty=${empty} withSubject />`)}
      ${answer.value.limitsTotal > limits.length && html`<p class="muted">
        ${plural(limits.length, "limit")} of ${count(answer.value.limitsTotal)}, those at which most waits.</p>`}`}
    <${Elsewhere} path=${path} promql="headgate_effective_limit" />
  </section>`;
}
