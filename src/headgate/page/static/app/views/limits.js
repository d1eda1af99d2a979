// Every limit in force: what is used of it, what waits for it, and where it is set.

import { html } from "../../vendor/preact.js";
import { count, plural } from "../format.js";
import { LimitWords, LimitsTable, useLooks } from "../limits_table.js";
import { Elsewhere, Figure, Figures, Freshness, NotSeen } from "../parts.js";
import { isAgent } from "../server.js";
import { useAnswer } from "../state.js";

const COUNT = 200;

export function Limits({ everyS }) {
  const path = `admin/v2/headgate/limits?count=${COUNT}`;
  const answer = useAnswer(path, everyS);
  const limits = answer.value?.limits ?? [];
  const keyOf = ({ level, subject, broker }) => `${level} ${subject} ${broker ?? ""}`;
  const looks = useLooks(answer.value?.at, new Map(limits.map((limit) => [keyOf(limit), limit.waitingS])));
  // An agent may know that a limit holds something, and not how much. One at which something waits now and then stays
  // where it is: it held something since an earlier look.
  const holds = (limit) => (limit.holds ?? limit.waiters > 0) || looks.some(({ values }) => (values.get(keyOf(limit)) ?? Infinity) < limit.waitingS);
  const holding = limits.filter(holds);
  const once = limits.filter((limit) => !holds(limit) && limit.waitingS > 0);
  const never = limits.filter((limit) => !holds(limit) && limit.waitingS === 0);
  const unknown = limits.filter((limit) => !holds(limit) && limit.waitingS == null);
  const groups = [
    ["Something waits for them now, or did in the last 15 seconds", holding, "Nothing waits for a limit now."],
    [`Nothing waits now, but something has since ${isAgent ? "the agent first saw their topic" : "their topic was loaded"}`, once, "None."],
    ["Nothing has waited for them since then", never, "None."],
    ...(unknown.length ? [["They do not hold now; whether they did is not known", unknown, ""]] : []),
  ];
  return html`<section class=${answer.isStale ? "is-stale" : ""}>
    <div class="title"><h1>Limits in force</h1><${Freshness} answer=${answer} everyS=${everyS} /></div>
    ${answer.value && html`<${Figures}>
        <${Figure} name="Limits" value=${count(answer.value.limitsTotal)} />
        <${Figure} name="Hold something" value=${count(holding.length)} />
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
