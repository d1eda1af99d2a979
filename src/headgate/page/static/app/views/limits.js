// Every limit in force: what is used of it, what waits for it, and where it is set.

import { html } from "../../vendor/preact.js";
import { count, plural } from "../format.js";
import { LimitWords, LimitsTable } from "../limits_table.js";
import { Elsewhere, Figure, Figures, Freshness, NotSeen } from "../parts.js";
import { isAgent } from "../server.js";
import { useAnswer } from "../state.js";

const COUNT = 200;

export function Limits({ everyS }) {
  const path = `admin/v2/headgate/limits?count=${COUNT}`;
  const answer = useAnswer(path, everyS);
  const limits = answer.value?.limits ?? [];
  // An agent may know that a limit holds something, and not how much.
  const holds = ({ holds: isHolding, waiters }) => isHolding ?? waiters > 0;
  const holding = limits.filter(holds);
  const once = limits.filter((limit) => !holds(limit) && limit.waitingS > 0);
  const never = limits.filter((limit) => !holds(limit) && limit.waitingS === 0);
  const unknown = limits.filter((limit) => !holds(limit) && limit.waitingS == null);
  const groups = [
    ["Something waits for them now", holding, "Nothing waits for a limit now."],
    [`Nothing waits now, but something has since ${isAgent ? "the agent first saw their topic" : "their topic was loaded"}`, once, "None."],
    ["Nothing has waited for them since then", never, "None."],
    ...(unknown.length ? [["They do not hold now; whether they did is not known", unknown, ""]] : []),
  ];
  return html`<section class=${answer.isStale ? "is-stale" : ""}>
    <div class="title"><h1>Limits in force</h1><${Freshness} answer=${answer} everyS=${everyS} /></div>
    ${answer.value && html`<${Figures}>
        <${Figure} name="Limits" value=${count(answer.value.limitsTotal)} />
        <${Figure} name="Hold something now" value=${count(holding.length)} />
      <//>
      <${LimitWords} />
      ${groups.map(([title, found, empty]) => html`<h2>${title}</h2>
        <${LimitsTable} limits=${found} at=${answer.value.at} empty=${empty} withSubject />`)}
      ${answer.value.limitsTotal > limits.length && html`<p class="muted">
        ${plural(limits.length, "limit")} of ${count(answer.value.limitsTotal)}, those at which most waits.</p>`}
      <${NotSeen} list=${answer.value.notSeen} />`}
    <${Elsewhere} path=${path} promql=${isAgent ? null : "headgate_effective_limit"} />
  </section>`;
}
