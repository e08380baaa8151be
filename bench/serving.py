"""A Datasette in a process of its own, and clients that cost as little as can be."""

from __future__ import annotations

import asyncio
import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

_START_SECONDS = 60


@dataclass(frozen=True)
class Server:
    """A server on this machine that answers."""

    port: int
    process: int

    def cpu_seconds(self) -> float | None:
        """Processor time used so far; None where the system does not say."""
        try:
            stat = Path(f"/proc/{self.process}/stat").read_text(encoding="utf-8")
        except OSError:
            return None
        user, system = stat.rpartition(")")[2].split()[11:13]
        return (int(user) + int(system)) / os.sysconf("SC_CLK_TCK")


@contextmanager
def served(arguments: Sequence[str]) -> Iterator[Server]:
    """``datasette serve`` with these arguments, ended at the end."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    command = [sys.executable, "-m", "datasette", "serve", *arguments, "--port", str(port)]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        _wait_for(port, process)
        yield Server(port, process.pid)
    finally:
        process.terminate()
        process.wait(_START_SECONDS)


def _wait_for(port: int, process: subprocess.Popen[bytes]) -> None:
    deadline = time.monotonic() + _START_SECONDS
    while process.poll() is None and time.monotonic() < deadline:
        try:
            socket.create_connection(("127.0.0.1", port), timeout=1).close()
        except OSError:
            time.sleep(0.05)
        else:
            return
    raise RuntimeError("Datasette did not start")


class Client:
    """One kept-alive connection that reads just enough of HTTP/1.1 to know where answers end."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader, self._writer = reader, writer

    @classmethod
    async def connect(cls, port: int) -> Client:
        return cls(*await asyncio.open_connection("127.0.0.1", port, limit=1 << 22))

    async def get(self, path: str) -> bytes:
        """The body of the answer, which must be good."""
        self._writer.write(f"GET {path} HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n".encode())
        head = (await self._reader.readuntil(b"\r\n\r\n")).lower()
        body = await self._body(head)
        if b" 200 " not in head.partition(b"\r\n")[0]:
            raise RuntimeError(f"{path}: {head.decode()}{body[:500].decode()}")
        return body

    async def _body(self, head: bytes) -> bytes:
        _, found, rest = head.partition(b"\r\ncontent-length:")
        if found:
            return await self._reader.readexactly(int(rest.partition(b"\r\n")[0]))
        chunks = []
        while size := int(await self._reader.readuntil(b"\r\n"), 16):
            chunks.append((await self._reader.readexactly(size + 2))[:-2])
        await self._reader.readuntil(b"\r\n")
        return b"".join(chunks)

    async def close(self) -> None:
        self._writer.close()
        await self._writer.wait_closed()


@dataclass(frozen=True)
class Block:
    """Requests sent by some clients, each sending its next when its last was answered."""

    latencies: list[float]
    seconds: float
    cpu: float | None

    @property
    def throughput(self) -> float:
        return len(self.latencies) / self.seconds


async def load(server: Server, paths: Sequence[str], clients: int) -> Block:
    """Requests all paths, in order, with so many clients at once."""
    waiting, latencies = iter(paths), []

    async def work(client: Client) -> None:
        for path in waiting:
            began = time.perf_counter()
            await client.get(path)
            latencies.append(time.perf_counter() - began)

    connected = [await Client.connect(server.port) for _ in range(clients)]
    cpu, began = server.cpu_seconds(), time.perf_counter()
    await asyncio.gather(*map(work, connected))
    seconds, after = time.perf_counter() - began, server.cpu_seconds()
    for client in connected:
        await client.close()
    used = None if cpu is None or after is None else after - cpu
    return Block(latencies, seconds, used)
