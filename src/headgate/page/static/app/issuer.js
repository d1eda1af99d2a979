// Signing in at the identity provider of the broker, which exchanges the code: nothing here asks another host.

import { request } from "./api.js";

const KEY = "headgate-sign-in";

// Leads the browser to the identity provider. What this tab keeps meanwhile is worthless without the
// browser's cookie, which no script can read.
export async function goToIssuer() {
  const { url, state } = await request("POST", "headgate/sign-in/start", {});
  sessionStorage.setItem(KEY, JSON.stringify({ state, view: location.hash }));
  location.assign(url);
}

// The state of the sign-in from which the browser comes back to this tab; null if there is none. The
// view where it began is shown again.
export function takeState() {
  let kept = null;
  try {
    kept = sessionStorage.getItem(KEY);
    sessionStorage.removeItem(KEY);
  } catch {
    // A browser may forbid storage: then nobody comes back from there, and all else works.
  }
  if (!kept) return null;
  const { state, view } = JSON.parse(kept);
  if (!location.hash && view.startsWith("#")) history.replaceState(null, "", view);
  return state;
}

// The token of a sign-in. The broker gives it once.
export async function tokenOf(state) {
  const { token } = await request("POST", "headgate/sign-in/token", { state });
  return token;
}
