// The actions on a topic or subscription that the reader's role may perform, as buttons.

import { html, useState } from "../../vendor/preact.js";
import { useAccess, useAllowed } from "../access.js";
import { SUBSCRIPTION_ACTIONS, TOPIC_ACTIONS } from "./catalog.js";

function Buttons({ actions, context, onDone }) {
  const { state } = useAccess();
  const operations = [...new Set(actions.map(({ operation }) => operation))];
  const allowed = useAllowed(operations, context.topic, context.subscription);
  const [open, setOpen] = useState(null);
  const isOpen = state === "open";
  // Few readers open a dialog, so its module is loaded then.
  const show = (action) => import("./dialog.js").then(({ Dialog }) => setOpen({ action, Dialog }), () => setOpen({}));
  const shown = actions.filter(({ operation, isFor }) => (isOpen || allowed?.has(operation)) && (!isFor || isFor(context.report)));
  // An agent changes nothing at the cluster that it looks at.
  if (!shown.length || context.report.evidence === "inferred") return null;
  return html`<p class="actions" role="group" aria-label="Actions"><span class="muted">${isOpen ? "Show the command for" : "Change"}</span>
      ${shown.map((action) => html`<button type="button" key=${action.id} onClick=${() => show(action)}>${action.name}…</button>`)}</p>
    ${open && !open.Dialog && html`<p class="notice" role="alert">The dialog could not be loaded. Reload the page.</p>`}
    ${open?.Dialog && html`<${open.Dialog} action=${open.action} context=${context} mayChange=${!isOpen} onClose=${() => setOpen(null)} onDone=${onDone} />`}`;
}

// ``report`` is explain's of the topic.
export function TopicActions({ report, onDone }) {
  return html`<${Buttons} actions=${TOPIC_ACTIONS} context=${{ topic: report.topic, report, whole: report }} onDone=${onDone} />`;
}

// ``report`` is explain's of the subscription, ``whole`` of its topic; ``onEnd`` is called when it was deleted.
export function SubscriptionActions({ report, whole, onDone, onEnd }) {
  const context = { topic: report.topic, subscription: report.subscription, report, whole, onEnd };
  return html`<${Buttons} actions=${SUBSCRIPTION_ACTIONS} context=${context} onDone=${onDone} />`;
}
