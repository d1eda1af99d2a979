// Requests to the admin API that serves this page. Nothing goes to another host.

import { isResolved } from "./format.js";

// The page is at PREFIX/headgate/, the API at PREFIX/admin/: a proxy may add any prefix.
export const ROOT = new URL("../", document.baseURI);
const TIMEOUT_MS = 15_000;
const KEPT_MAX = 200;
// So old may an answer be that the server made for another page, and no older than the page's own
// interval, so that a lone page gets new answers. Just after a change, each answer is new.
const SHARED_AGE_S_MAX = 5;

let changedAtMs = -Infinity;

// With this header the broker names Basic "xBasic", so that the browser shows no dialog of its own.
const OF_A_SCRIPT = { "X-Requested-With": "headgate" };
const METHODS = { bearer: "token", xbasic: "basic", basic: "basic" };

let authorization = "";
let whenRefused = () => {};
const answers = new Map();

// The credentials live in this variable alone: a reload forgets them.
export function setCredentials(header) {
  authorization = header;
  answers.clear();
}

export function hasCredentials() {
  return authorization !== "";
}

// What to do when the server wants other credentials: called with the methods that it offers.
export function onCredentialsRefused(act) {
  whenRefused = act;
}

function ownHeaders() {
  return authorization ? { ...OF_A_SCRIPT, Authorization: authorization } : { ...OF_A_SCRIPT };
}

// An agent that watches several clusters is asked about the one that ?cluster=NAME of the page names.
export function chosenCluster() {
  return new URLSearchParams(location.search).get("cluster");
}

export function address(path) {
  const cluster = chosenCluster();
  const joint = path.includes("?") ? "&" : "?";
  return `${ROOT.href}${path}${cluster ? `${joint}cluster=${encodeURIComponent(cluster)}` : ""}`;
}

function target(path) {
  if (isResolved(path)) throw new Refused(0, "A browser cannot ask about a name with the part . or ..: use headgate admin");
  return address(path);
}

export class Refused extends Error {
  constructor(status, reason, methods = null) {
    super(reason);
    this.status = status;
    // The ways to sign in that a 401 names; null if credentials would not help.
    this.methods = methods;
  }
}

// The methods of sign-in in a WWW-Authenticate header; null without one.
export function methodsOf(header) {
  if (header == null) return null;
  const found = [...header.matchAll(/([A-Za-z]+) +realm=/g)].map(([, scheme]) => METHODS[scheme.toLowerCase()]);
  return [...new Set(found.filter(Boolean))];
}

// A 401 without a challenge is of authorization, as in Pulsar: the role is known and lacks a right.
function refusal(reply, reason) {
  const methods = reply.status === 401 ? methodsOf(reply.headers.get("WWW-Authenticate")) : null;
  const isOfRights = reply.status === 403 || (reply.status === 401 && !methods);
  const error = new Refused(reply.status, isOfRights ? `Your role lacks a right: ${reason}` : reason, methods);
  if (methods) whenRefused(error);
  return error;
}

async function send(method, path, body, everyS) {
  const url = target(path);
  const headers = { ...ownHeaders(), Accept: "application/json" };
  if (body !== undefined) headers["Content-Type"] = "application/json";
  const kept = method === "GET" ? answers.get(url) : undefined;
  if (kept?.etag) headers["If-None-Match"] = kept.etag;
  if (method !== "GET") changedAtMs = performance.now();
  else if (everyS && performance.now() - changedAtMs > 1000 * SHARED_AGE_S_MAX + TIMEOUT_MS) {
    headers["Cache-Control"] = `max-age=${Math.min(SHARED_AGE_S_MAX, everyS)}`;
  }
  let reply;
  try {
    reply = await fetch(url, {
      method,
      headers,
      body: body === undefined ? undefined : JSON.stringify(body),
      cache: "no-store",
      credentials: "same-origin",
      signal: AbortSignal.timeout(TIMEOUT_MS),
    });
  } catch (error) {
    const late = error.name === "TimeoutError";
    throw new Refused(0, late ? "No answer within 15 s" : "The server cannot be reached");
  }
  const madeAtMs = performance.now() - 1000 * Number(reply.headers.get("Age") ?? 0);
  if (reply.status === 304 && kept) {
    kept.madeAtMs = madeAtMs;
    return kept.value;
  }
  const text = await reply.text();
  let value = null;
  try {
    value = text ? JSON.parse(text) : null;
  } catch {
    if (reply.ok) throw new Refused(reply.status, "The answer is not JSON: a proxy may have sent it");
  }
  if (!reply.ok) throw refusal(reply, value?.reason ?? reply.statusText ?? "refused");
  if (method === "GET") {
    answers.delete(url);
    answers.set(url, { etag: reply.headers.get("ETag"), value, madeAtMs });
    if (answers.size > KEPT_MAX) answers.delete(answers.keys().next().value);
  }
  return value;
}

// An answer that is bare text.
export async function getText(path) {
  const reply = await fetch(target(path), {
    headers: ownHeaders(), cache: "no-store", credentials: "same-origin", signal: AbortSignal.timeout(TIMEOUT_MS),
  });
  if (!reply.ok) throw refusal(reply, reply.statusText);
  return reply.text();
}

const MESSAGE = "x-pulsar-";
const PROPERTY = "x-pulsar-property-";

// One stored entry: {id, properties, batchSize, text, sizeBytes, published}.
export async function getMessage(path) {
  const reply = await fetch(target(path), {
    headers: ownHeaders(), cache: "no-store", credentials: "same-origin", signal: AbortSignal.timeout(TIMEOUT_MS),
  });
  if (!reply.ok) {
    const answer = await reply.json().catch(() => null);
    throw refusal(reply, answer?.reason ?? reply.statusText);
  }
  const body = await reply.arrayBuffer();
  const properties = {};
  for (const [name, value] of reply.headers) {
    if (name.startsWith(PROPERTY)) properties[name.slice(PROPERTY.length)] = value;
  }
  return {
    id: reply.headers.get(`${MESSAGE}message-id`),
    published: reply.headers.get(`${MESSAGE}publish-time`),
    batchSize: Number(reply.headers.get(`${MESSAGE}num-batch-message`) ?? 1),
    properties,
    sizeBytes: body.byteLength,
    text: new TextDecoder().decode(body),
  };
}

// With `everyS`, the page asks again after so many seconds, and an answer made for another page serves.
export const get = (path, everyS = 0) => send("GET", path, undefined, everyS);
export const request = send;

// How long ago the server made its answer to `path`. Pages that ask anew as soon as that is as old as
// their interval come to ask together, and share an answer that is new.
export function ageMs(path) {
  const kept = answers.get(address(path));
  return kept ? performance.now() - kept.madeAtMs : 0;
}
