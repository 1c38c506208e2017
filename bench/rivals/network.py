"""A server and clients on one machine, each with a network of its own: namespaces of Linux joined by a bridge."""

import os
import pathlib
import subprocess
import threading
import time

SERVER = "10.77.0.1"
PREFIX = "terse-rivals"


def _ip(*words):
    subprocess.run(["ip", *map(str, words)], check=True, stdin=subprocess.DEVNULL)


class Network:
    """The namespaces, as a context manager; it needs root.

    clients: how many. uplink: what `tbf` lets through from each client, such as "1mbit"; None: whatever the machine does.
    """

    def __init__(self, clients, uplink=None):
        self._clients, self._uplink, self._holders = clients, uplink, []

    def __enter__(self):
        try:
            self._make(PREFIX)
            _ip("-n", PREFIX, "link", "add", "br0", "type", "bridge")
            _ip("-n", PREFIX, "addr", "add", f"{SERVER}/24", "dev", "br0")
            _ip("-n", PREFIX, "link", "set", "br0", "up")
            for k in range(self._clients):
                self._add_client(k)
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_):
        for holder in self._holders:
            holder.kill()
            holder.wait()
        for name in [PREFIX] + [f"{PREFIX}-{k}" for k in range(self._clients)]:
            subprocess.run(["ip", "netns", "delete", name], check=False, stderr=subprocess.DEVNULL)

    def in_server(self, command):
        return ["ip", "netns", "exec", PREFIX, *map(str, command)]

    def in_client(self, k, command):
        return ["ip", "netns", "exec", f"{PREFIX}-{k}", *map(str, command)]

    def counters(self):
        """For each client the bytes that its interface has sent and received, as the kernel counts them: whole frames."""
        return [self._counter(holder.pid) for holder in self._holders]

    def _make(self, name):
        _ip("netns", "add", name)
        _ip("-n", name, "link", "set", "lo", "up")

    def _add_client(self, k):
        name, far = f"{PREFIX}-{k}", f"to-{k}"
        self._make(name)
        _ip("link", "add", far, "netns", PREFIX, "type", "veth", "peer", "name", "eth0", "netns", name)
        _ip("-n", PREFIX, "link", "set", far, "master", "br0")
        # One segment a frame, as on a wire: a larger one would be counted with one header.
        _ip("-n", PREFIX, "link", "set", far, "gso_max_segs", 1, "up")
        _ip("-n", name, "addr", "add", f"10.77.0.{10 + k}/24", "dev", "eth0")
        _ip("-n", name, "link", "set", "eth0", "gso_max_segs", 1, "up")
        if self._uplink:
            subprocess.run(
                [
                    "tc",
                    "-n",
                    name,
                    "qdisc",
                    "add",
                    "dev",
                    "eth0",
                    "root",
                    "tbf",
                    "rate",
                    self._uplink,
                    "burst",
                    "16kb",
                    "latency",
                    "500ms",
                ],
                check=True,
            )
        # Its /proc shows the namespace's counters to this process.
        holder = subprocess.Popen(self.in_client(k, ["sleep", "infinity"]))
        self._holders.append(holder)
        while os.readlink(f"/proc/{holder.pid}/ns/net") == os.readlink("/proc/self/ns/net"):
            time.sleep(0.01)

    @staticmethod
    def _counter(pid):
        for line in pathlib.Path(f"/proc/{pid}/net/dev").read_text().splitlines():
            if line.strip().startswith("eth0:"):
                columns = [int(word) for word in line.split(":")[1].split()]
                return columns[8], columns[0]
        raise RuntimeError("a client's namespace has no eth0")


class Recorder(threading.Thread):
    """Reads the counters ten times a second, so that bytes can be told by time."""

    def __init__(self, network):
        super().__init__(daemon=True)
        self._network, self._over = network, threading.Event()
        self.rows = [(time.time(), network.counters())]

    def run(self):
        while not self._over.wait(0.1):
            self.rows.append((time.time(), self._network.counters()))

    def stop(self):
        self._over.set()
        self.join()
        self.rows.append((time.time(), self._network.counters()))

    def at(self, when):
        """The counters at the first reading from a time on."""
        return next((counters for moment, counters in self.rows if moment >= when), self.rows[-1][1])
