"""An Apache Pulsar broker on free ports, from the jars that Maven fetched."""

from __future__ import annotations

import socket
import subprocess
import time
import urllib.error
import urllib.request
from pathlib import Path
from typing import Final

import pulsar

READY_LIMIT_S: Final = 120.0
STOP_LIMIT_S: Final = 30.0
_LOGGING: Final = Path(__file__).with_name("pulsar") / "log4j2.xml"
_SETTINGS: Final = {
    "metadataStoreUrl": "",
    "configurationMetadataStoreUrl": "",
    "bindAddress": "127.0.0.1",
    "advertisedAddress": "127.0.0.1",
    "clusterName": "standalone",
    "managedLedgerDefaultEnsembleSize": "1",
    "managedLedgerDefaultWriteQuorum": "1",
    "managedLedgerDefaultAckQuorum": "1",
    "loadBalancerEnabled": "false",
    "journalMaxGroupWaitMSec": "1",
    "dbStorage_writeCacheMaxSizeMb": "64",
    "dbStorage_readAheadCacheMaxSizeMb": "32",
    # A test machine's disk is often nearly full, and the broker would refuse to write.
    "diskUsageThreshold": "0.99",
    "diskUsageLwmThreshold": "0.99",
    "diskUsageWarnThreshold": "0.99",
    "webSocketServiceEnabled": "false",
    # As conf/bookkeeper.conf has it: an entry of the largest message with its header. With the
    # built-in 5 MiB such an entry closes the connection, and the broker makes ledgers for ever.
    "nettyMaxFrameSizeBytes": "5253120",
}
_OPENED: Final = (
    "java.base/sun.net",
    "java.base/java.lang",
    "java.base/java.nio",
    "java.base/jdk.internal.misc",
    "java.base/jdk.internal.platform",
    "java.management/sun.management",
    "jdk.management/com.sun.management.internal",
)
"""What the broker's libraries reach for inside Java."""


def _free_ports(count: int) -> list[int]:
    sockets = [socket.socket() for _ in range(count)]
    try:
        for each in sockets:
            each.bind(("127.0.0.1", 0))
        return [each.getsockname()[1] for each in sockets]
    finally:
        for each in sockets:
            each.close()


class ApachePulsar:
    """One broker with its own storage and metadata, in one process. A context manager."""

    def __init__(self, java: str, jars: Path, folder: Path) -> None:
        """``jars`` is where Maven put them; ``folder`` gets settings, data and log."""
        self._folder = folder
        binary, web = _free_ports(2)
        self.service_url = f"pulsar://127.0.0.1:{binary}"
        self.admin_url = f"http://127.0.0.1:{web}"
        ports = {"brokerServicePort": str(binary), "webServicePort": str(web)}
        settings = folder / "standalone.conf"
        settings.write_text("".join(f"{k}={v}\n" for k, v in (_SETTINGS | ports).items()))
        opened = [word for each in _OPENED for word in ("--add-opens", f"{each}=ALL-UNNAMED")]
        self._command = [
            java, *opened, f"-Dlog4j.configurationFile={_LOGGING}",
            "-Dio.netty.tryReflectionSetAccessible=true", "-Xms512m", "-Xmx1g",
            "-XX:MaxDirectMemorySize=1g", "-cp", f"{jars}/*",
            "org.apache.pulsar.PulsarStandaloneStarter", "--config", str(settings),
            "-nfw", "-nss", "-a", "127.0.0.1",
        ]  # fmt: skip
        self._process: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> ApachePulsar:
        """Start it and wait until it takes a message."""
        with (self._folder / "pulsar.log").open("wb") as log:
            self._process = subprocess.Popen(
                self._command, cwd=self._folder, stdout=log, stderr=subprocess.STDOUT
            )
        deadline_s = time.monotonic() + READY_LIMIT_S
        try:
            while not (self._has_namespace() and self._takes_messages()):
                if self._process.poll() is not None or time.monotonic() > deadline_s:
                    raise RuntimeError(f"it did not start:\n{self._log_end()}")
                time.sleep(0.5)
        except BaseException:
            self._end()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        """End it."""
        self._end()

    def _end(self) -> None:
        if self._process is None:
            return
        self._process.terminate()
        try:
            self._process.wait(STOP_LIMIT_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait(STOP_LIMIT_S)

    def _has_namespace(self) -> bool:
        """It says that it is ready a little before ``public/default`` is there."""
        url = f"{self.admin_url}/admin/v2/namespaces/public"
        try:
            with urllib.request.urlopen(url, timeout=5) as reply:
                return b"public/default" in reply.read()
        except (urllib.error.URLError, OSError):
            return False

    def _takes_messages(self) -> bool:
        logger = pulsar.ConsoleLogger(pulsar.LoggerLevel.Error)
        client = pulsar.Client(self.service_url, operation_timeout_seconds=10, logger=logger)
        try:
            producer = client.create_producer("persistent://public/default/is-ready")
            producer.send(b"?")
        except pulsar.PulsarException:
            return False
        finally:
            client.close()
        return True

    def _log_end(self) -> str:
        return (self._folder / "pulsar.log").read_text(errors="replace")[-2_000:]
