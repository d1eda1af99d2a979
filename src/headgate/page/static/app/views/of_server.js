// The views that work over a server: {live, history}. A browser loads those of no other.

export async function viewsOf(server) {
  const live = server.live ? (await import("./index.js")).VIEWS : [];
  const past = server.history ? (await import("./past.js")).VIEWS : [];
  return [...live, ...past];
}
