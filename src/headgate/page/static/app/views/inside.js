// The views that only a broker can fill, as live.js has those of a broker and of an agent.

import { Adaptive } from "./adaptive.js";
import { Broker } from "./broker.js";
import { Browse } from "./browse.js";

export const VIEWS = [
  { path: "adaptive", name: "Adaptive", view: Adaptive },
  { path: "broker", name: "Broker", view: Broker },
  { path: "browse", name: "Browse", view: Browse },
];
