// The views that a server can fill. A browser loads those alone.

// {live, history, views}: what the server says of itself.
export async function viewsOf({ live, history, views }) {
  const past = history ? (await import("./past.js")).VIEWS : [];
  if (!live) return past;
  const more = views.includes("cluster") ? await import("./cluster.js") : await import("./inside.js");
  const found = [...(await import("./live.js")).VIEWS, ...more.VIEWS].filter(({ path, name }) => !name || views.includes(path));
  return [...found, ...past];
}
