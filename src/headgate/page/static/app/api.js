// Requests to the admin API that serves this page. Nothing goes to another host.

// The page is at PREFIX/headgate/, the API at PREFIX/admin/: a proxy may add any prefix.
const ROOT = new URL("../", document.baseURI);
const TIMEOUT_MS = 15_000;
const KEPT_MAX = 200;

let authorization = "";
const answers = new Map();

// The credentials live in this variable alone: a reload forgets them.
export function signIn(header) {
  authorization = header;
  answers.clear();
}

export function isSignedIn() {
  return authorization !== "";
}

// An agent that watches several clusters is asked about the one that ?cluster=NAME of the page names.
const CLUSTER = new URLSearchParams(location.search).get("cluster");

export function address(path) {
  const url = new URL(path, ROOT);
  if (CLUSTER) url.searchParams.set("cluster", CLUSTER);
  return url.href;
}

export class Refused extends Error {
  constructor(status, reason) {
    super(reason);
    this.status = status;
  }
}

async function send(method, path, body) {
  const headers = { Accept: "application/json" };
  if (authorization) headers.Authorization = authorization;
  if (body !== undefined) headers["Content-Type"] = "application/json";
  const kept = method === "GET" ? answers.get(path) : undefined;
  if (kept?.etag) headers["If-None-Match"] = kept.etag;
  let reply;
  try {
    reply = await fetch(address(path), {
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
  if (reply.status === 304 && kept) return kept.value;
  const text = await reply.text();
  let value = null;
  try {
    value = text ? JSON.parse(text) : null;
  } catch {
    if (reply.ok) throw new Refused(reply.status, "The answer is not JSON: a proxy may have sent it");
  }
  if (!reply.ok) throw new Refused(reply.status, value?.reason ?? reply.statusText ?? "refused");
  if (method === "GET") {
    answers.delete(path);
    answers.set(path, { etag: reply.headers.get("ETag"), value });
    if (answers.size > KEPT_MAX) answers.delete(answers.keys().next().value);
  }
  return value;
}

const MESSAGE = "x-pulsar-";
const PROPERTY = "x-pulsar-property-";

// One stored entry: {id, properties, batchSize, text, sizeBytes, published}.
export async function getMessage(path) {
  const headers = authorization ? { Authorization: authorization } : {};
  const reply = await fetch(address(path), {
    headers, cache: "no-store", credentials: "same-origin", signal: AbortSignal.timeout(TIMEOUT_MS),
  });
  if (!reply.ok) {
    const answer = await reply.json().catch(() => null);
    throw new Refused(reply.status, answer?.reason ?? reply.statusText);
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

export const get = (path) => send("GET", path);
export const request = send;
