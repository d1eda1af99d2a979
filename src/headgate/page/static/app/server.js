// What the server of the page answers: {live, history}, and signIn, the identity provider if there is one. A file says it, so that nobody has to sign in first.

import { get } from "./api.js";

const BROKER = { live: true, history: false };

export async function readServer() {
  try {
    return { ...BROKER, ...(await get("headgate/server.json")) };
  } catch {
    return BROKER;
  }
}
