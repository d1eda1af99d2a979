// The views of the present: path in the URL, name in the menu (none: it is reached by links), component.

import { Limits } from "./limits.js";
import { Now } from "./now.js";
import { Storage } from "./storage.js";
import { Subscription } from "./subscription.js";
import { Topic } from "./topic.js";

export const VIEWS = [
  { path: "now", name: "Now", view: Now },
  { path: "limits", name: "Limits", view: Limits },
  { path: "storage", name: "Quotas and storage", view: Storage },
  { path: "topic", view: Topic },
  { path: "subscription", view: Subscription },
];
