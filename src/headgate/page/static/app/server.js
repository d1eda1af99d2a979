// What the server of the page answers. A file says it, so that nobody has to sign in first.

import { get } from "./api.js";

// {live, history, views}: the present, the past, and the views of the present that it can fill.
const BROKER = { live: true, history: false, views: ["now", "limits", "storage", "adaptive", "broker", "browse"] };

async function readServer() {
  try {
    return { ...BROKER, ...(await get("headgate/server.json")) };
  } catch {
    return BROKER;
  }
}

export const server = await readServer();
// An agent looks at clusters, and asks about one of them in each request.
export const isAgent = server.live && server.views.includes("cluster");
