// What the URL says, and answers that are asked for again and again.

import { useCallback, useEffect, useState } from "../vendor/preact.js";
import { ageMs, chosenCluster, get } from "./api.js";

// "#/topic/a/b?x=1" as {parts: ["topic", "a", "b"], query: URLSearchParams}.
export function readRoute() {
  const [path, query = ""] = location.hash.replace(/^#\/?/, "").split("?");
  const parts = path.split("/").filter(Boolean).map(decodeURIComponent);
  return { parts, query: new URLSearchParams(query) };
}

export function link(parts, query = {}) {
  const path = parts.map(encodeURIComponent).join("/");
  const entries = Object.entries(query).filter(([, value]) => value !== "" && value != null);
  const text = new URLSearchParams(entries).toString();
  return `#/${path}${text ? `?${text}` : ""}`;
}

export function useRoute() {
  const [route, setRoute] = useState(() => ({ ...readRoute(), cluster: chosenCluster() }));
  useEffect(() => {
    const changed = () => setRoute({ ...readRoute(), cluster: chosenCluster() });
    // Another cluster changes the address before the hash.
    const events = ["hashchange", "popstate"];
    for (const each of events) addEventListener(each, changed);
    return () => events.forEach((each) => removeEventListener(each, changed));
  }, []);
  return route;
}

// Changes one parameter of the URL, without a new entry of the browser's history.
export function setQuery(name, value) {
  const { parts, query } = readRoute();
  if (value === "" || value == null) query.delete(name);
  else query.set(name, value);
  history.replaceState(null, "", link(parts, Object.fromEntries(query)));
  dispatchEvent(new HashChangeEvent("hashchange"));
}

export const INTERVALS_S = [2, 5, 15, 60];
export const INTERVAL_S = 5;
const LEAST_MS = 1000;

// How often to ask: 0 is never. In the URL, so that a link keeps it.
export function intervalOf(query) {
  if (query.get("paused") === "1") return 0;
  const asked = Number(query.get("every"));
  return INTERVALS_S.includes(asked) ? asked : INTERVAL_S;
}

// An answer of the API: {value, error, atMs, isStale, ask}. It stays when the next request fails.
export function useAnswer(path, everyS) {
  const [found, setFound] = useState({ path, value: null, error: null, atMs: 0 });
  const [now, setNow] = useState(Date.now());
  const ask = useCallback(async () => {
    if (!path) return 0;
    try {
      const value = await get(path, everyS);
      setFound({ path, value, error: null, atMs: Date.now() });
      return ageMs(path);
    } catch (error) {
      setFound((before) => ({
        ...(before.path === path ? before : { path, value: null, atMs: 0 }),
        error,
      }));
    }
    return 0;
  }, [path, everyS]);
  useEffect(() => {
    let timer = 0;
    let isOver = false;
    const turn = async () => {
      const agedMs = document.hidden ? 0 : await ask();
      if (!isOver && everyS) timer = setTimeout(turn, Math.max(LEAST_MS, 1000 * everyS - agedMs));
    };
    turn();
    const shown = () => {
      if (!document.hidden && everyS) ask();
    };
    document.addEventListener("visibilitychange", shown);
    return () => {
      isOver = true;
      clearTimeout(timer);
      document.removeEventListener("visibilitychange", shown);
    };
  }, [ask, everyS]);
  useEffect(() => {
    const timer = setInterval(() => setNow(Date.now()), 1000);
    return () => clearInterval(timer);
  }, []);
  const current = found.path === path ? found : { value: null, error: null, atMs: 0 };
  const ageS = current.atMs ? Math.max(0, (now - current.atMs) / 1000) : null;
  const isStale = ageS != null && ageS > Math.max(3 * everyS, 10) + 5;
  return { ...current, ageS, isStale, ask };
}
