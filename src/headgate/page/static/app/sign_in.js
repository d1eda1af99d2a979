// Signing in with the means of the broker, and who is signed in.

import { html, useState } from "../vendor/preact.js";
import { hasCredentials } from "./api.js";
import { goToIssuer } from "./issuer.js";
import { offerSignIn, signInByPassword, signInByToken, signOut, useAccess } from "./access.js";

const NAMES = { token: "Token", basic: "User and password" };

function useSending(act) {
  const [sending, setSending] = useState({ isSending: false, error: null });
  const submit = async (event) => {
    event.preventDefault();
    setSending({ isSending: true, error: null });
    try {
      await act(new FormData(event.target));
    } catch (error) {
      setSending({ isSending: false, error });
    }
  };
  return { ...sending, submit };
}

function Refusal({ error }) {
  return error && html`<p class="notice" role="alert">${error.message}</p>`;
}

function TokenForm() {
  const { isSending, error, submit } = useSending((form) => signInByToken(form.get("token")));
  return html`<form class="fields" onSubmit=${submit}>
    <label>Token <input name="token" type="password" autocomplete="off" spellcheck="false" required /></label>
    <button class="primary" disabled=${isSending}>Sign in with the token</button>
    <${Refusal} error=${error} /></form>`;
}

function PasswordForm() {
  const { isSending, error, submit } = useSending((form) => signInByPassword(form.get("user"), form.get("password")));
  return html`<form class="fields" onSubmit=${submit}>
    <label>User <input name="user" autocomplete="username" required /></label>
    <label>Password <input name="password" type="password" autocomplete="current-password" required /></label>
    <button class="primary" disabled=${isSending}>Sign in with the password</button>
    <${Refusal} error=${error} /></form>`;
}

function IssuerForm({ issuer }) {
  const { isSending, error, submit } = useSending(goToIssuer);
  return html`<form class="fields" onSubmit=${submit}>
    <button class="primary" disabled=${isSending} title=${issuer}>Sign in with ${new URL(issuer).host}</button>
    <${Refusal} error=${error} /></form>`;
}

// In the place of a view, whose address stays in the URL.
export function SignIn({ access, issuer }) {
  const { methods, reason } = access;
  return html`<section class="sign-in"><h1>Sign in</h1>
    <p>This broker answers only clients that it knows. What you enter stays in the memory of this tab: a reload forgets it.</p>
    ${reason && html`<p class="notice" role="alert">${reason}. Sign in again.</p>`}
    ${issuer && html`<article class="card"><h2>Identity provider</h2><${IssuerForm} issuer=${issuer} /></article>`}
    ${methods.includes("token") && html`<article class="card"><h2>${NAMES.token}</h2><${TokenForm} /></article>`}
    ${methods.includes("basic") && html`<article class="card"><h2>${NAMES.basic}</h2><${PasswordForm} /></article>`}
    ${!methods.length && html`<p class="notice calm">It takes client certificates: open the page with one that your browser has.</p>`}
  </section>`;
}

// In the head of the page.
export function Reader() {
  const { state, role } = useAccess();
  if (state === "open") return html`<p class="reader" title="The broker authenticates nobody (authenticationEnabled=false)">read-only</p>`;
  if (state !== "in") return null;
  return html`<p class="reader"><span class="name">${role}</span>
    ${hasCredentials()
      ? html`<button type="button" onClick=${signOut}>Sign out</button>`
      : html`<button type="button" onClick=${() => offerSignIn()}>Sign in</button>`}</p>`;
}
