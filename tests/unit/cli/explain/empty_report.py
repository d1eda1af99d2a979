"""What a broker without topics answers to ``headgate explain``."""

from __future__ import annotations

EMPTY = {
    "at": "2026-11-21T18:18:35.976Z",
    "broker": "localhost:8080",
    "subscriptionsTotal": 0,
    "quotas": [],
    "publishing": [],
    "damaged": [],
    "withBacklog": 0,
    "subscriptions": [],
}
