"""A broker with authentication and authorization, a tenant with a few topics, and those who use
them."""

from __future__ import annotations

import asyncio
import json
from typing import Any, Final

from headgate.admin.app import AdminApp
from headgate.base.identity import LAPSE_KEY, SCOPE_KEY
from headgate.broker.authentication import Authentication, ClientCredentials, Session
from headgate.facade.admin_facade import AdminFacade
from headgate.security.provider import Credentials
from headgate.testing import SimClient, World
from headgate.wire.codes import ProducerAccessMode
from tests.unit.admin.client import Answer, ask_async, encode
from tests.unit.security.made_tokens import token_of, token_provider

ROLE: Final = "a"
"""Whose right ends."""
TOKEN_ID: Final = "token-of-a"
OTHER: Final = "b"
PROXY: Final = "proxy"
SUPER: Final = "super"
NAMESPACE: Final = "acme/ns"
SHARED: Final = f"persistent://{NAMESPACE}/shared"
"""A topic with a producer that stays."""
HELD: Final = f"persistent://{NAMESPACE}/held"
"""A topic of which a client that answers no PING has exclusive access: who asks for that waits
until the client counts as dead."""
FREE: Final = f"persistent://{NAMESPACE}/free"
"""A topic without a producer."""
TOPICS: Final = (SHARED, HELD, FREE)
MESSAGES: Final = 12
MESSAGES_APART_S: Final = 0.7
"""So that rollbacks and seeks to a time find different messages."""
ADDRESS: Final = "10.0.0.1"
SETTINGS: Final = {
    "authenticationEnabled": "true",
    "authorizationEnabled": "true",
    "superUserRoles": SUPER,
    "proxyRoles": PROXY,
    "brokerDeleteInactiveTopicsEnabled": "false",  # only who has a right deletes one
}


class Stage(World):
    """The broker. Everyone uses it with a token of their own."""

    def __init__(self, seed: int) -> None:
        super().__init__(seed, settings=SETTINGS, providers=[token_provider()])

    async def furnish(self, admin: str, granted: str) -> None:
        """Make the topics. ``admin`` is the tenant's administrator; ``granted`` may produce and
        consume there."""
        broker = await self.start()
        self._app = AdminApp(AdminFacade(broker, self.observer), self.clock, broker.audit)
        base = f"/admin/v2/namespaces/{NAMESPACE}"
        tenant = {"adminRoles": [admin], "allowedClusters": ["standalone"]}
        creation = {"allowAutoTopicCreation": True, "topicType": "partitioned",
                    "defaultNumPartitions": 2}  # fmt: skip
        for method, path, body in (
            ("PUT", "/admin/v2/tenants/acme", tenant),
            ("PUT", base, None),
            ("PUT", f"{base}/schemaCompatibilityStrategy", "ALWAYS_COMPATIBLE"),
            ("POST", f"{base}/autoTopicCreation", creation),
            *[("POST", f"{base}/permissions/{role}", ["produce", "consume"])
              for role in {granted: 0, OTHER: 0, PROXY: 0}],
            *[("PUT", f"/admin/v2/{topic.replace('://', '/')}", None) for topic in TOPICS],
        ):  # fmt: skip
            answer = await self.ask_as(self.session(SUPER), method, path, body)
            assert answer.status == 204, (path, answer.body)
        client = await self.enter(SUPER)
        producers = [await client.producer(topic) for topic in TOPICS]
        for _ in range(MESSAGES):
            await asyncio.gather(*[producer.send(b"x" * 100) for producer in producers])
            await asyncio.sleep(MESSAGES_APART_S)
        for producer in producers[1:]:
            await producer.close()
        holder = await self.enter(OTHER)
        await holder.producer(HELD, access_mode=ProducerAccessMode.EXCLUSIVE)
        holder.answers_pings = False

    async def enter(
        self, role: str, behind: str = "", client: SimClient | None = None
    ) -> SimClient:
        """A client of a role that is connected, or one of it behind the proxy ``behind``."""
        client = self.open_connection(client)
        more = {"original_principal": role} if behind else {}
        await client.connect(token=lambda: _token(behind or role), **more)
        return client

    def session(self, role: str, behind: str = "") -> Session:
        """The same of requests over HTTP."""
        token = Credentials("token", _token(behind or role), address=ADDRESS)
        found = self._authentication_now.session(ClientCredentials(token, role if behind else ""))
        assert isinstance(found, Session)
        return found

    async def ask_as(self, session: Session, method: str, path: str, body: object = None) -> Answer:
        """Send a request of a session that was good when its head came."""

        def why_lapsed() -> str:
            return self._authentication_now.why_lapsed(session, ADDRESS)

        scope: dict[str, Any] = {SCOPE_KEY: session.identity, LAPSE_KEY: why_lapsed}
        data = encode(None if body is None else json.dumps(body).encode())
        return await ask_async(self._app, method, path, data, scope)

    @property
    def _authentication_now(self) -> Authentication:
        found = self.broker.authentication
        assert found is not None
        return found


def _token(role: str) -> bytes:
    return token_of(role, jti=f"token-of-{role}")
