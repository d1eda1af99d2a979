// Every view: its path in the URL, its name in the menu (none: it is reached by links), its component.

import { Now } from "./now.js";
import { Subscription } from "./subscription.js";
import { Topic } from "./topic.js";

export const VIEWS = [
  { path: "now", name: "Now", view: Now },
  { path: "topic", view: Topic },
  { path: "subscription", view: Subscription },
];
