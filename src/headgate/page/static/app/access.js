// Who the reader is, and what that role may do. The broker says it; the page only shows it.

import { useEffect, useState } from "../vendor/preact.js";
import { get, onCredentialsRefused, setCredentials } from "./api.js";
import { basicHeader, bearerHeader } from "./credentials.js";
import { tokenOf } from "./issuer.js";

const OWN = "admin/v2/headgate/permissions/own";
const RETRY_MS = 5_000;

// "asking": not known yet. "open": the server authenticates nobody, so the page changes nothing.
// "out": credentials are needed. "in": ``role`` is known. "unknown": the server does not say.
let access = { state: "asking", role: "", methods: [], reason: "", turn: 0 };
const listeners = new Set();

function change(more) {
  access = { ...access, ...more, turn: access.turn + 1 };
  for (const each of listeners) each(access);
}

onCredentialsRefused(({ methods, message }) => {
  setCredentials("");
  if (access.state === "out") return;
  change({ state: "out", role: "", methods, reason: access.state === "in" ? message : "" });
});

export async function learnAccess() {
  try {
    const { role } = await get(OWN);
    change({ state: role ? "in" : "open", role, reason: "" });
  } catch (error) {
    // Every role may ask this: a 401 without a challenge is of a broker that takes certificates only.
    if (error.status === 401 && !error.methods) change({ state: "out", role: "", methods: [], reason: "" });
    else if (!error.methods && access.state === "asking") change({ state: "unknown" });
    if (access.state === "unknown" && (error.status < 400 || error.status >= 429)) setTimeout(retry, RETRY_MS);
    throw error;
  }
}

function retry() {
  learnAccess().catch(() => {});
}

async function signIn(header) {
  setCredentials(header);
  try {
    await learnAccess();
  } catch (error) {
    setCredentials("");
    throw error;
  }
}

export const signInByToken = (token) => signIn(bearerHeader(token));
export const signInByPassword = (user, password) => signIn(basicHeader(user, password));

// At the start of the page. With ``state`` the browser comes back from the identity provider.
export async function begin(state) {
  let failure = "";
  if (state) {
    try {
      await signInByToken(await tokenOf(state));
      return;
    } catch (error) {
      failure = error.message;
    }
  }
  await learnAccess().catch(() => {});
  if (failure) offerSignIn(failure);
}

// A client certificate or a proxy may sign in again at once: then the role stays.
export function signOut() {
  setCredentials("");
  change({ state: "asking", role: "", reason: "" });
  retry();
}

// For a role that a certificate, a proxy or anonymousUserRole gave. No answer has named the methods.
export function offerSignIn(reason = "") {
  change({ state: "out", methods: access.methods.length ? access.methods : ["token", "basic"], reason });
}

export function useAccess() {
  const [found, setFound] = useState(access);
  useEffect(() => {
    listeners.add(setFound);
    setFound(access);
    return () => listeners.delete(setFound);
  }, []);
  return found;
}

// Which of ``operations`` the reader's role may perform on a topic; null while it is not known.
export function useAllowed(operations, topic, subscription = "") {
  const { state, turn } = useAccess();
  const [allowed, setAllowed] = useState(null);
  const query = new URLSearchParams({ operations: operations.join(","), resource: topic, subscription });
  const path = `${OWN}?${query}`;
  useEffect(() => {
    let isOver = false;
    setAllowed(null);
    if (state === "in") {
      get(path).then((answer) => isOver || setAllowed(new Set(answer.allowed)), () => {});
    }
    return () => {
      isOver = true;
    };
  }, [path, state, turn]);
  return allowed;
}
