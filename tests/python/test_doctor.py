"""`mptcplab doctor` with the real program: this machine, and live connections between two namespaces."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import kernel_program as k
import pytest
from command_line import program

import mptcplab

pytestmark = pytest.mark.kernel


def lab(*words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(program(*words), capture_output=True, text=True, check=False)


def lines(found: dict[str, Any], name: str) -> list[dict[str, Any]]:
    return [line for line in found["connection_findings"] if line["name"] == name]


@pytest.fixture
def hosts() -> Iterator[tuple[k.Host, k.Host]]:
    k.program()
    k.need_root()
    with k.two_hosts() as pair:
        yield pair


def asked_until(pid: int, subflows: int) -> dict[str, Any]:
    """Ask about a process until its connection has that many subflows: a join takes a round trip."""
    for _ in range(50):
        found = mptcplab.doctor(pid=pid)
        if found["connections"] and len(found["connections"][0]["subflows"]) == subflows:
            return found
        time.sleep(0.1)
    raise AssertionError((found["connections"], found["connection_findings"]))


def test_every_line_has_a_status_and_every_problem_is_explained() -> None:
    k.program()
    found = mptcplab.doctor()
    assert {line["status"] for line in found["findings"]} <= {"ok", "warn", "missing"}
    assert all(line["found"] and line["meaning"] for line in found["findings"])
    assert all(line["remedy"] for line in found["findings"] if line["status"] == "missing")
    assert found["ready"] == all(line["status"] != "missing" for line in found["findings"])
    names = [line["name"] for line in found["findings"]]
    assert {"version", "BTF", "struct_ops", "TUN device", "default", "receive", "iperf3"} <= set(names)


@pytest.mark.parametrize("typed", ["mptcplab", "mptcplab-kernel"])
def test_a_remedy_names_the_command_of_the_user_by_its_path(typed: str, tmp_path: Path) -> None:
    """It named .venv/bin/mptcplab to whoever had only the program, and mptcplab-kernel to readers of JSON."""
    copy = tmp_path / "mptcplab-kernel"
    shutil.copy(k.program(), copy)
    # The command of the environment, if it is installed there; otherwise it is found by its name.
    installed = Path(sys.executable).with_name("mptcplab")
    command = {"mptcplab": installed if installed.is_file() else Path("mptcplab"), "mptcplab-kernel": copy}[typed]
    start = program() if typed == "mptcplab" else [str(copy)]
    # Without the capabilities of root, which a test as root has to give up.
    bare = ["setpriv", "--bounding-set=-all", "--inh-caps=-all"] if os.geteuid() == 0 else []
    done = subprocess.run([*bare, *start, "doctor", "--json"], capture_output=True, text=True, check=False)
    assert done.returncode == 1, done.stderr
    assert ".venv" not in done.stdout.replace(str(installed), "")
    remedies = {line["name"]: line["remedy"] for line in json.loads(done.stdout)["findings"]}
    runs = {
        "mptcplab": "run SCENARIO --engine kernel",
        "mptcplab-kernel": "run --scenario SCENARIO --out DIRECTORY",
    }
    assert remedies["eBPF privileges"] == f"sudo {command} {runs[typed]}"


@pytest.mark.parametrize("words", [("doctor",), ("cc", "list")])
def test_an_output_that_cannot_be_written_is_no_panic(words: tuple[str, ...]) -> None:
    command = [k.program(), *words]
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, text=True, check=False)
    assert done.returncode == 2
    assert done.stderr.startswith("error: cannot write to the standard output: No space left on device")
    # A reader that has gone wants no more, and that is no error.
    reader = subprocess.Popen(["true"], stdin=subprocess.PIPE)
    reader.wait()
    done = subprocess.run(command, stdout=reader.stdin, stderr=subprocess.PIPE, text=True, check=False)
    assert "panicked" not in done.stderr
    assert "error" not in done.stderr


def test_an_error_that_cannot_be_written_is_no_panic() -> None:
    reader = subprocess.Popen(["true"], stdin=subprocess.PIPE)
    reader.wait()
    with Path("/dev/full").open("w") as full:
        for stderr in (full, reader.stdin):
            done = subprocess.run([k.program(), "cc", "load", "nonsense"], stderr=stderr, check=False)
            assert done.returncode == 2


def test_the_exit_code_and_the_table_say_the_same_as_the_json() -> None:
    k.program()
    done = lab("doctor", "--rate", "1 Gbit/s", "--rtt", "2 s")
    found = mptcplab.doctor(rate="1 Gbit/s", rtt="2 s")
    assert done.returncode == (0 if found["ready"] else 1)
    # 250 MB in flight: more than the buffers of any machine by default, and the table has the command for both.
    for name, setting in (("receive", "tcp_rmem"), ("send", "tcp_wmem")):
        line = next(line for line in found["findings"] if line["name"] == name)
        assert line["status"] == "warn"
        assert line["remedy"].startswith(f'sysctl -w net.ipv4.{setting}="')
        assert f"-> {line['remedy']}\n" in done.stdout


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--pid", "4194304"), "--pid 4194304"),
        (("--connection", "10.0.0.1-10.0.0.2"), "SRC:PORT-DST:PORT"),
        (("--rate", "100 mbps", "--rtt", "1 s"), "100 Mbit/s"),
        (("--rate", "100 Mbit/s"), "rate without rtt: '100 Mbit/s'"),
        (("--rtt", "1 s"), "rtt without rate: '1 s'"),
        (("--pid", "1", "--connection", "10.0.0.1:1-10.0.0.2:2"), "pid and connection exclude each other"),
        (("--pid", "99999999999"), "`mptcplab doctor --help` shows what it takes"),
    ],
)
def test_invalid_options_are_an_error(words: tuple[str, ...], message: str) -> None:
    k.program()
    done = lab("doctor", *words)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("error: ")
    assert message in done.stderr
    assert "hint: " in done.stderr
    assert "mptcplab-kernel" not in done.stderr
    as_json = lab("doctor", "--json", *words)
    assert (as_json.returncode, as_json.stdout, as_json.stderr) == (2, "", done.stderr)


def test_every_subflow_is_shown_with_its_algorithm(hosts: tuple[k.Host, k.Host]) -> None:
    client, server = hosts
    client("""
        ip mptcp limits set subflows 3
        ip mptcp endpoint add 10.9.2.1 dev up2 subflow backup
        ip route add 10.9.1.0/24 dev up2 src 10.9.2.1 metric 9
        sysctl -w net.ipv4.conf.all.rp_filter=0 net.ipv4.conf.up2.rp_filter=0
    """)
    server.start("server", "10.9.1.2", 5001)
    sender, address = client.start("client", "10.9.1.2", 5001, "reno")
    found = asked_until(sender.pid, 2)
    first, second = found["connections"][0]["subflows"]
    assert (first["local"], second["local"].partition(":")[0]) == (address, "10.9.2.1")
    assert (first["congestion"], second["congestion"]) == ("reno", "reno")
    assert (first["backup_local"], second["backup_local"]) == (False, True)
    assert lines(found, "absent") == []
    assert "uncoupled" in lines(found, "coupling")[0]["meaning"]
    # The same by either subflow's addresses, asked from inside.
    words = client.inside(str(k.program()), "doctor", "--json", "--connection")
    for subflow in (first, second):
        done = subprocess.run([*words, f"{subflow['local']}-{subflow['remote']}"], capture_output=True, check=False)
        assert json.loads(done.stdout)["connections"][0]["token"] == found["connections"][0]["token"]


def test_a_missing_subflow_is_explained_by_its_cause(hosts: tuple[k.Host, k.Host]) -> None:
    client, server = hosts
    client("ip mptcp limits set subflows 1")
    # As hosts behind a router do: no answer on a link for an address of another one.
    server("sysctl -w net.ipv4.conf.all.arp_ignore=1")
    server.start("server", "10.9.1.2", 5002)
    sender, _ = client.start("client", "10.9.1.2", 5002)

    def absent() -> list[tuple[str, str]]:
        found = lines(asked_until(sender.pid, 1), "absent")
        return [(line["meaning"], line["remedy"]) for line in found]

    ((meaning, remedy),) = absent()
    assert "no endpoint" in meaning
    assert remedy == "ip mptcp endpoint add 10.9.2.1 dev up2 subflow"
    client("ip mptcp endpoint add 10.9.2.1 dev up2 subflow")
    ((meaning, _),) = absent()
    assert "no route from it to 10.9.1.2" in meaning
    client("ip link set up2 down")
    ((meaning, remedy),) = absent()
    assert (meaning, remedy) == ("its device up2 is down or has no link", "ip link set up2 up")
    client("ip address delete 10.9.2.1/24 dev up2")
    ((meaning, _),) = absent()
    assert meaning == "no device of this host has that address"
    client("""
        ip mptcp limits set subflows 0
        ip address add 10.9.2.1/24 dev up2
        ip link set up2 up
        ip route add 10.9.1.0/24 dev up2 metric 9
    """)
    for _ in range(50):
        ((meaning, remedy),) = absent()
        # A device has a link only some time after it is set up.
        if "is down" not in meaning:
            break
    assert "limit of 0 subflows" in meaning
    assert remedy.startswith("ip mptcp limits set ")


def test_an_endpoint_of_ipv6_is_found_and_its_subflow_explained(hosts: tuple[k.Host, k.Host]) -> None:
    """The doctor did not look at it, and told the operator to add what was there."""
    client, server = hosts
    for host, device, end in ((client, "up", 1), (server, "down", 2)):
        for number in (1, 2):
            host(f"ip address add 2001:db8:{number}::{end}/64 dev {device}{number} nodad")
    client("""
        ip mptcp limits set subflows 1
        ip mptcp endpoint add 2001:db8:2::1 id 7 dev up2 subflow backup
    """)
    server.start("server", "2001:db8:1::2", 5004)
    sender, _ = client.start("client", "2001:db8:1::2", 5004)
    found = asked_until(sender.pid, 1)
    (endpoints,) = [line for line in found["findings"] if line["name"] == "endpoints"]
    assert endpoints["found"] == "2001:db8:2::1 id 7 dev up2 subflow backup"
    (line,) = lines(found, "absent")
    assert line["found"] == "from 2001:db8:2::1 on up2 (endpoint 7)"
    assert "no route from it to 2001:db8:1::2" in line["meaning"]
    assert line["remedy"].startswith("ip -6 rule add from 2001:db8:2::1 table 107 && ip -6 route add default")
    # What the remedy does; the server forwards nothing, but answers for its other address.
    client("""
        ip -6 rule add from 2001:db8:2::1 table 107
        ip -6 route add default via 2001:db8:2::2 dev up2 table 107
        ip mptcp endpoint delete id 7
        ip mptcp endpoint add 2001:db8:2::1 id 7 dev up2 subflow
    """)
    found = asked_until(sender.pid, 2)
    assert lines(found, "absent") == []
    sources = {subflow["local"].rpartition(":")[0] for subflow in found["connections"][0]["subflows"]}
    assert sources == {"[2001:db8:1::1]", "[2001:db8:2::1]"}


def test_a_fallback_to_tcp_is_named_with_its_cause(hosts: tuple[k.Host, k.Host]) -> None:
    client, server = hosts
    server("sysctl -w net.mptcp.enabled=0")
    # With MPTCP off the server's socket has to be a plain one.
    plain = k.PEER.replace("262", "0")
    child = subprocess.Popen(
        server.inside(sys.executable, "-c", plain, "server", "10.9.1.2", "5003", ""), stdout=subprocess.PIPE, text=True
    )
    server.children.append(child)
    assert child.stdout is not None
    assert child.stdout.readline() == "ready\n"
    sender, _ = client.start("client", "10.9.1.2", 5003)
    found = mptcplab.doctor(pid=sender.pid)
    (line,) = lines(found, "fallback")
    assert line["status"] == "missing"
    assert "MPCapableFallbackSYNACK = 1" in line["meaning"]
    done = lab("doctor", "--pid", str(sender.pid))
    assert done.returncode == 1


def test_a_process_without_mptcp_is_reported_with_a_remedy(hosts: tuple[k.Host, k.Host]) -> None:
    client, _ = hosts
    found = mptcplab.doctor(pid=client.keeper.pid)
    (line,) = found["connection_findings"]
    assert (line["found"], line["status"]) == ("none", "missing")
    assert found["connections"] == []
