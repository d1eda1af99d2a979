// One action: its fields, the request it will send, what that will probably change, and one question.

import { html, useEffect, useRef, useState } from "../../vendor/preact.js";
import { address, get, request } from "../api.js";
import { ToCopy } from "../parts.js";
import { commandOf, curlOf } from "./requests.js";

function Field({ field, value, onValue }) {
  const change = (event) => onValue(event.target.value);
  if (field.choices) {
    return html`<label>${field.label} <select name=${field.name} value=${value} onChange=${change}>
      ${field.choices.map(([key, name]) => html`<option value=${key}>${name}</option>`)}</select></label>`;
  }
  return html`<label>${field.label} <input type="number" name=${field.name} value=${value} step="1" min=${field.min ?? 0}
    required=${Boolean(field.isNeeded)} onInput=${change} /></label>`;
}

// What is set now fills the fields, so that sending it unread changes nothing.
function useCurrent(action, context, values, setValues) {
  const path = action.currentPath?.(context);
  const choice = action.reads ? values[action.reads] : "";
  useEffect(() => {
    let isOver = false;
    if (path) {
      get(path).then((found) => {
        const current = action.currentValues(found, values);
        if (!isOver && current) setValues((before) => ({ ...before, ...current }));
      }, () => {});
    }
    return () => {
      isOver = true;
    };
  }, [path, choice]);
}

// What else holds messages back, before anything is entered.
function Elsewhere({ found }) {
  if (!found) return null;
  const words = ["brokers", "update-dynamic-config", "--config", found.setting, "--value", "N"];
  return html`<p>${found.sentence}${found.setting && " This changes that one, for all that it holds:"}</p>
    ${found.setting && html`<${ToCopy} name="headgate" text=${commandOf({ words }, address(""))} />`}`;
}

export function Dialog({ action, context, mayChange, onClose, onDone }) {
  const box = useRef(null);
  const first = { ...Object.fromEntries(action.fields.map((field) => [field.name, field.first ?? ""])), ...action.inForce?.(context) };
  const [values, setValues] = useState(first);
  const [openedMs] = useState(Date.now());
  const [{ isSending, error, isDone }, setOutcome] = useState({ isSending: false, error: null, isDone: false });
  useCurrent(action, context, values, setValues);
  useEffect(() => box.current.showModal(), []);
  const asked = action.request({ ...context, values, nowMs: openedMs });
  const shown = action.fields.filter(({ when }) => !when || when(values));
  const isReady = shown.every(({ isNeeded, name }) => !isNeeded || String(values[name]).trim()) && (!action.isReady || action.isReady(values));
  const send = async (event) => {
    event.preventDefault();
    setOutcome({ isSending: true, error: null, isDone: false });
    try {
      await request(asked.method, asked.path, asked.body);
      // What was deleted has no view any more, so neither has this dialog.
      if (action.isEnd) return context.onEnd();
      setOutcome({ isSending: false, error: null, isDone: true });
      return onDone();
    } catch (failure) {
      return setOutcome({ isSending: false, error: failure, isDone: false });
    }
  };
  const close = () => box.current.close();
  const subject = context.subscription ? `${context.subscription} of ${context.topic}` : context.topic;
  return html`<dialog ref=${box} aria-labelledby="action-name" onClose=${onClose}>
    <form class="fields" onSubmit=${send}>
      <div><h2 id="action-name">${action.name}</h2><p class="muted name">${subject}</p></div>
      ${isDone ? html`<p class="notice calm" role="status">Done: the broker has carried it out, and its audit log has it.</p>` : html`
        <div class="pairs">${shown.map((field) => html`<${Field} key=${field.name}
          field=${field} value=${values[field.name]} onValue=${(value) => setValues((before) => ({ ...before, [field.name]: value }))} />`)}</div>
        <section aria-label="Effect"><h3>What it would change</h3>
          <${Elsewhere} found=${action.elsewhere?.(context)} />
          ${isReady ? action.effect({ ...context, values }).map((sentence) => html`<p>${sentence}</p>`)
            : html`<p>${action.missing ?? "Nothing yet: enter a number."}</p>`}</section>
        ${isReady && html`<section aria-label="Request"><h3>The request</h3>
          <pre class="request">${asked.method} /${asked.path}${asked.body === undefined ? "" : `\n${JSON.stringify(asked.body, null, 1)}`}</pre>
          <details open=${!mayChange}><summary>As a command</summary>
            <${ToCopy} name="headgate" text=${commandOf(asked, address(""))} />
            <${ToCopy} name="curl" text=${curlOf(asked, address(asked.path), mayChange)} /></details></section>`}
        ${!mayChange && isReady && html`<p class="notice calm">This broker authenticates nobody, so the page changes nothing. Copy one of the two commands.</p>`}
        ${error && html`<p class="notice" role="alert">${error.message}${error.status ? ` (status ${error.status})` : ""}</p>`}`}
      <div class="buttons">
        ${mayChange && !isDone && html`<button class=${action.isLossy ? "primary lossy" : "primary"} disabled=${isSending || !isReady}>
          ${isSending ? "Sending" : "Send this request"}</button>`}
        <button type="button" onClick=${close}>${mayChange && !isDone ? "Cancel" : "Close"}</button>
      </div>
    </form></dialog>`;
}
