// The views of the past, as index.js has those of a broker.

import { Backtests } from "./backtests.js";
import { Episode } from "./episode.js";
import { Forecast, Forecasts } from "./forecasts.js";
import { Episodes } from "./history.js";
import { Timeline, Timelines, TopicTimelines } from "./timelines.js";

export const VIEWS = [
  { path: "episodes", name: "Episodes", view: Episodes },
  { path: "timelines", name: "Timelines", view: Timelines },
  { path: "forecasts", name: "Forecasts", view: Forecasts },
  { path: "backtests", name: "Backtests", view: Backtests },
  { path: "episode", view: Episode },
  { path: "timeline", view: Timeline },
  { path: "forecast", view: Forecast },
  // Links that were made at the page of a broker: its views of the hour, here from the tables.
  { path: "subscription", view: Timeline },
  { path: "topic", view: TopicTimelines },
];
