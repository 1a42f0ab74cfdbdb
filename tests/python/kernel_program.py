"""The real `mptcplab-kernel`, where this machine has it and may use it, and hosts for tests."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import textwrap
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from mptcplab.engines import kernel
from mptcplab.engines.vm import kernels, qemu
from mptcplab.engines.vm.kernels import Kernel
from mptcplab.errors import EngineError


def program() -> Path:
    """The program, or a skip that says why there is none."""
    try:
        return kernel.program()
    except EngineError as error:
        pytest.skip(f"SKIPPED, NOT TESTED: {str(error).splitlines()[0]}")


def virtual_kernel(suite: str, *tools: str) -> Kernel:
    """The kernel of a suite for virtual machines, or a skip that says what they need. `tools` are needed as well."""
    for tool in (qemu.PROGRAM, "cc", "strip", *tools):
        if shutil.which(tool) is None:
            pytest.skip(f"SKIPPED, NOT TESTED: there is no {tool}; `mptcplab doctor` says how to get it")
    try:
        return kernels.find(f"vm:{suite}")
    except EngineError as error:
        pytest.skip(f"SKIPPED, NOT TESTED: {str(error).splitlines()[0]}")


def need_root() -> None:
    """Skip, with the reason, where network namespaces and eBPF are not available."""
    if os.geteuid() != 0:
        pytest.skip("SKIPPED, NOT TESTED: this needs root")
    if not Path("/sys/kernel/btf/vmlinux").exists():
        pytest.skip("SKIPPED, NOT TESTED: this kernel has no BTF")
    for tool in ("ip", "unshare", "nsenter"):
        if shutil.which(tool) is None:
            pytest.skip(f"SKIPPED, NOT TESTED: no {tool} (Debian packages iproute2 and util-linux)")


# A server that reads and a client that writes a little, for ever. Arguments: role, address, port, algorithm.
PEER = """
import socket, sys, time
role, address, port, algorithm = sys.argv[1], sys.argv[2], int(sys.argv[3]), sys.argv[4]
family = socket.AF_INET6 if ":" in address else socket.AF_INET
end = socket.socket(family, socket.SOCK_STREAM, 262)
if algorithm:
    end.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, algorithm.encode())
if role == "server":
    end.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    end.bind((address, port))
    end.listen()
    print("ready", flush=True)
    peer, _ = end.accept()
    while peer.recv(65536):
        pass
else:
    end.connect((address, port))
    print("%s:%d" % end.getsockname()[:2], flush=True)
    while True:
        end.send(b"x" * 1000)
        time.sleep(0.05)
"""


@contextmanager
def bpf_file_system() -> Iterator[list[str]]:
    """Words before a command that make it see a BPF file system of its own, which goes with everything pinned in it."""
    keeper = subprocess.Popen(
        ["unshare", "-m", "sh", "-c", "mount -t bpf bpf /sys/fs/bpf && echo ready && exec sleep 600"],
        stdout=subprocess.PIPE,
        text=True,
    )
    assert keeper.stdout is not None
    with keeper.stdout:
        try:
            if keeper.stdout.readline() != "ready\n":
                pytest.skip("SKIPPED, NOT TESTED: no BPF file system can be mounted")
            yield ["nsenter", "-t", str(keeper.pid), "-m", "--wd=" + os.getcwd()]  # noqa: PTH109
        finally:
            keeper.kill()
            keeper.wait()


class Host:
    """A network namespace that lives while its first process does."""

    def __init__(self) -> None:
        self.keeper = subprocess.Popen(["unshare", "-n", "sleep", "600"])
        self.children = [self.keeper]
        before = Path("/proc/self/ns/net").readlink()
        while Path(f"/proc/{self.keeper.pid}/ns/net").readlink() == before:
            if self.keeper.poll() is not None:
                raise RuntimeError("no network namespace")
        self("ip link set lo up")

    def inside(self, *words: str) -> list[str]:
        return ["nsenter", "-t", str(self.keeper.pid), "-n", *words]

    def __call__(self, commands: str) -> None:
        for command in filter(None, map(str.strip, textwrap.dedent(commands).splitlines())):
            subprocess.run(self.inside(*command.split()), check=True, capture_output=True, text=True)

    def start(self, role: str, address: str, port: int, algorithm: str = "") -> tuple[subprocess.Popen[str], str]:
        """Start a peer; return it and the first line that it prints, which says that it is there."""
        words = self.inside(sys.executable, "-c", PEER, role, address, str(port), algorithm)
        child = subprocess.Popen(words, stdout=subprocess.PIPE, text=True)
        self.children.append(child)
        assert child.stdout is not None
        return child, child.stdout.readline().strip()

    def stop(self) -> None:
        for child in reversed(self.children):
            child.kill()
            child.wait()
            if child.stdout is not None:
                child.stdout.close()


@contextmanager
def two_hosts() -> Iterator[tuple[Host, Host]]:
    """A client and a server with two links between them: 10.9.1.0/24 and 10.9.2.0/24, .1 and .2 on each."""
    client, server = Host(), Host()
    try:
        for number in (1, 2):
            # The pair of devices is made in the client's namespace, its other end in the server's.
            client(f"ip link add up{number} type veth peer name down{number} netns {server.keeper.pid}")
            for host, device, end in ((client, "up", 1), (server, "down", 2)):
                host(f"""
                    ip address add 10.9.{number}.{end}/24 dev {device}{number}
                    ip link set {device}{number} up
                """)
        server("ip mptcp limits set subflows 8 add_addr_accepted 8")
        yield client, server
    finally:
        client.stop()
        server.stop()
