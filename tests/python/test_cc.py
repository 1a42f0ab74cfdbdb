"""`mptcplab cc` with the real program: load, use, list, unload; the kernel is as before afterwards."""

from __future__ import annotations

import json
import platform
import re
import signal
import socket
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

AVAILABLE = Path("/proc/sys/net/ipv4/tcp_available_congestion_control")
# No other traffic runs the template, so loading it disturbs none.
NAME = "lab_template"
COUPLED = "lab_template_co"
PINS = "/sys/fs/bpf/mptcplab"
# The privileges that loading has in the unit of `cc persist`.
OF_THE_UNIT = ("setpriv", "--bounding-set", "-all,+bpf,+perfmon", "--inh-caps", "-all,+bpf,+perfmon")
SET_DEFAULT = "echo {} > /proc/sys/net/ipv4/tcp_congestion_control"


def available() -> list[str]:
    return AVAILABLE.read_text().split()


class Lab:
    """The command line, all calls with the same BPF file system."""

    def __init__(self, before: list[str]) -> None:
        self.before = before

    def words(self, *words: str) -> list[str]:
        return [*self.before, *program("cc", *words)]

    def __call__(self, *words: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(self.words(*words), capture_output=True, text=True, check=False)

    def entry(self, name: str = NAME) -> dict[str, Any]:
        """What `cc list` says about the algorithm."""
        listed = json.loads(self("list", "--json").stdout)
        return next((one for one in listed if one["name"] == name), {})


@pytest.fixture
def lab() -> Iterator[Lab]:
    k.program()
    k.need_root()
    if NAME in available():
        pytest.skip(f"SKIPPED, NOT TESTED: somebody has loaded {NAME} on this machine")
    with k.bpf_file_system() as before:
        yield Lab(before)
    # The pins went with their file system, and nothing else keeps it.
    assert gone()


def gone(name: str = NAME) -> bool:
    """Whether it disappears: the kernel frees the link in the background after its pin was removed."""
    for _ in range(100):
        if name not in available():
            return True
        time.sleep(0.05)
    return False


def test_a_pinned_algorithm_stays_available_until_it_is_unloaded(lab: Lab) -> None:
    done = lab("load", "template", "--pin")
    assert done.returncode == 0, done.stderr
    # The first look for a pin came with a complaint of libbpf.
    assert "libbpf" not in done.stderr
    assert NAME in available()
    assert (lab.entry()["kind"], lab.entry()["pin"]) == ("operator's", f"/sys/fs/bpf/mptcplab/{NAME}")
    listening, dialled = socket.socket(), socket.socket()
    with listening, dialled:
        listening.bind(("127.0.0.1", 0))
        listening.listen()
        dialled.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, NAME.encode())
        dialled.connect(listening.getsockname())
        assert dialled.getsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, 16).rstrip(b"\0") == NAME.encode()
        assert lab.entry()["sockets"] >= 1
        done = lab("unload", "template")
        assert done.returncode == 0, done.stderr
        assert "1 socket keeps it until it closes" in done.stdout
        assert gone()
        # The socket that uses it continues.
        dialled.send(b"still there")
        accepted, _ = listening.accept()
        with accepted:
            assert accepted.recv(64) == b"still there"
    done = lab("unload", "template")
    assert done.returncode == 2
    assert f"{NAME} is not loaded" in done.stderr


def test_where_there_is_nothing_to_unload_no_default_is_missed(lab: Lab) -> None:
    """It warned of namespaces into which it could not look, although nothing was to be unloaded."""
    if any(one["kind"] == "operator's" for one in json.loads(lab("list", "--json").stdout)):
        pytest.skip("SKIPPED, NOT TESTED: somebody has loaded an algorithm on this machine")
    done = lab("unload", "--all")
    assert (done.returncode, done.stdout, done.stderr) == (0, "no algorithm was loaded\n", "")


def test_an_algorithm_that_is_the_default_of_another_network_namespace_stays(lab: Lab) -> None:
    assert lab("load", "template", "--pin").returncode == 0
    host = k.Host()
    try:
        write = "echo {} > /proc/sys/net/ipv4/tcp_congestion_control"
        subprocess.run(host.inside("sh", "-c", write.format(NAME)), check=True)
        done = lab("unload", "template")
        assert done.returncode == 2
        assert lab.entry()["sockets"] == 0
        # Another algorithm may not be allowed there.
        other = Path("/proc/sys/net/ipv4/tcp_allowed_congestion_control").read_text().split()[0]
        sysctl = f"sysctl -w net.ipv4.tcp_congestion_control={other}"
        assert f"first: nsenter --net=/proc/{host.keeper.pid}/ns/net {sysctl}\n" in done.stderr
        where = f"1 network namespace: that of process {host.keeper.pid} (sleep)"
        assert f"{NAME} is the default congestion control of {where}" in done.stderr
        assert NAME in available()
        subprocess.run(host.inside("sh", "-c", write.format("reno")), check=True)
    finally:
        host.stop()
    assert lab("unload", "template").returncode == 0


def connections(host: k.Host, number: int) -> subprocess.Popen[str]:
    """MPTCP connections of one process to itself that run the coupled template, in the namespace of the host."""
    text = """
import socket, sys
def end():
    made = socket.socket(socket.AF_INET, socket.SOCK_STREAM, 262)
    made.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, sys.argv[1].encode())
    return made
server, kept = end(), []
server.bind(("127.0.0.1", 0))
server.listen(64)
for _ in range(int(sys.argv[2])):
    client = end()
    client.connect(server.getsockname())
    kept += [client, server.accept()[0]]
print("ready", flush=True)
sys.stdin.read()
"""
    words = host.inside(sys.executable, "-c", text, COUPLED, str(number))
    child = subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    host.children.append(child)
    assert child.stdout is not None
    assert child.stdout.readline() == "ready\n"
    return child


@pytest.mark.parametrize(("room", "dialled", "fits"), [(61, 30, True), (1, 6, False)])
def test_as_many_connections_are_coupled_as_was_asked_for(lab: Lab, room: int, dialled: int, fits: bool) -> None:
    """The table overflowed before it was full, and nobody said so for a pinned algorithm."""
    if COUPLED in available():
        pytest.skip(f"SKIPPED, NOT TESTED: somebody has loaded {COUPLED} on this machine")
    assert lab("load", "template-coupled", "--pin", "--connections", str(room)).returncode == 0
    host = k.Host()
    try:
        connections(host, dialled)
        uncoupled = lab.entry(COUPLED)["uncoupled"]
        assert (uncoupled == 0) == fits
        assert ("ran uncoupled" in lab("list").stdout) != fits
    finally:
        host.stop()
        done = lab("unload", "template-coupled")
    assert done.returncode == 0, done.stderr
    assert ("ran uncoupled; use a larger --connections" in done.stderr) != fits
    assert gone(COUPLED)


@pytest.mark.parametrize(("beyond", "uncoupled"), [(7, 0), (8, 1)])
def test_a_ninth_subflow_is_counted_as_uncoupled(lab: Lab, beyond: int, uncoupled: int) -> None:
    """It got a table of its own, grew like a connection of its own, and the doctor called it coupled."""
    if COUPLED in available():
        pytest.skip(f"SKIPPED, NOT TESTED: somebody has loaded {COUPLED} on this machine")
    assert lab("load", "template-coupled", "--pin").returncode == 0
    with k.two_hosts() as (client, server):
        client("ip mptcp limits set subflows 8 add_addr_accepted 8")
        for number in range(beyond):
            address = f"10.9.1.{11 + number}"
            client(f"ip address add {address}/24 dev up1")
            client(f"ip mptcp endpoint add {address} dev up1 subflow")
        server.start("server", "10.9.1.2", 5201)
        sender, _ = client.start("client", "10.9.1.2", 5201, COUPLED)
        for _ in range(200):
            if lab.entry(COUPLED)["sockets"] == 1 + beyond:
                break
            time.sleep(0.05)
        listed = lab.entry(COUPLED)
        assert (listed["sockets"], listed["uncoupled"]) == (1 + beyond, uncoupled)
        words = [*lab.before, *program("doctor", "--pid", str(sender.pid), "--json")]
        found = json.loads(subprocess.run(words, capture_output=True, text=True, check=False).stdout)
        (coupling,) = (one for one in found["connection_findings"] if one["name"] == "coupling")
        assert coupling["status"] == ("warn" if uncoupled else "ok"), coupling
    done = lab("unload", "template-coupled")
    assert done.returncode == 0, done.stderr
    assert gone(COUPLED)


def test_in_the_foreground_an_algorithm_is_unloaded_when_the_command_ends(lab: Lab) -> None:
    command = subprocess.Popen(lab.words("load", "template"), stdout=subprocess.PIPE, text=True)
    assert command.stdout is not None
    with command.stdout:
        assert command.stdout.readline() == f"loaded: {NAME}\n"
        assert NAME in available()
        command.send_signal(signal.SIGINT)
        assert command.wait(20) == 0
    assert gone()


def test_in_the_foreground_a_signal_that_nohup_ignores_ends_nothing(lab: Lab) -> None:
    words = [*lab.before, "nohup", str(k.program()), "cc", "load", "template"]
    command = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    assert command.stdout is not None
    with command.stdout:
        assert command.stdout.readline() == f"loaded: {NAME}\n"
        command.send_signal(signal.SIGHUP)
        with pytest.raises(subprocess.TimeoutExpired):
            command.wait(0.5)
        assert NAME in available()
        command.send_signal(signal.SIGTERM)
        assert command.wait(20) == 0
    assert gone()


def test_what_keeps_an_algorithm_after_the_foreground_ended_is_named(lab: Lab) -> None:
    """It stayed the default of the namespace, in no list, and nobody said a word."""
    host = k.Host()
    command = subprocess.Popen(lab.words("load", "template"), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        assert command.stdout is not None
        assert command.stdout.readline() == f"loaded: {NAME}\n"
        assert "sysctl" not in command.stdout.readline()
        write = f"echo {NAME} > /proc/sys/net/ipv4/tcp_congestion_control"
        subprocess.run(host.inside("sh", "-c", write), check=True)
        command.send_signal(signal.SIGINT)
        _, said = command.communicate(timeout=20)
        where = f"process {host.keeper.pid} (sleep)"
        assert f"warning: {NAME} remains the default congestion control of {where}" in said
        assert f"nsenter --net=/proc/{host.keeper.pid}/ns/net sysctl" in said
        assert "socket" not in said.partition("new sockets")[2]
        assert gone()
        done = lab("load", "template", "--pin")
        assert f"warning: {NAME} of an earlier load is still the default of {where}: set it again" in done.stderr
    finally:
        host.stop()
    assert done.returncode == 0
    assert lab("unload", "template").returncode == 0


def test_root_of_a_user_namespace_is_told_that_it_may_not_look(lab: Lab) -> None:
    """The list was empty there, with exit code 0."""
    assert lab("load", "template", "--pin").returncode == 0
    words = [*lab.before, "unshare", "--user", "--map-root-user", *program("cc", "list")]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (2, "")
    assert "user namespace" in done.stderr
    assert lab("unload", "template").returncode == 0


def test_what_is_pinned_with_the_same_options_is_loaded_already(lab: Lab) -> None:
    assert lab("load", "template", "--pin", "--param", "increase=2.5").returncode == 0
    again = lab("load", "template", "--pin", "--param", "increase=2.5")
    assert (again.returncode, again.stdout) == (0, f"already loaded: {NAME}\n")
    done = lab("load", "template", "--pin", "--param", "increase=2.5", "--json")
    assert json.loads(done.stdout) == {"pinned": [{"name": NAME}]}
    for other in (["increase=3"], ["increase=2.5", "--connections", "77"], ["increase=2.5", "--profile", "linux-pre4"]):
        assert lab("load", "template", "--pin", "--param", *other).returncode == 2, other
    assert lab("unload", "template").returncode == 0


def test_with_the_privileges_of_the_unit_what_is_pinned_is_loaded_already(lab: Lab) -> None:
    """The unit could not be started again after its stop was refused: it may not list what is loaded."""
    load = [*lab.before, *OF_THE_UNIT, *program("cc", "load", "--pin")]

    def as_unit(*words: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run([*load, *words], capture_output=True, text=True, check=False)

    done = as_unit("--param=template.increase=2.5", "template")
    assert done.returncode == 0, done.stderr
    again = as_unit("--param=template.increase=2.5", "template")
    assert (again.returncode, again.stdout) == (0, f"already loaded: {NAME}\n"), again.stderr
    done = as_unit("--param=template.increase=3", "template")
    assert done.returncode == 2
    assert f"{NAME} is pinned with other options" in done.stderr
    assert lab("unload", "template").returncode == 0
    assert as_unit("template").returncode == 0
    assert lab("unload", "template").returncode == 0


def test_another_program_under_the_same_name_is_not_the_same(lab: Lab, tmp_path: Path) -> None:
    """It was called loaded already, and so was the former program after an update of the package."""
    if COUPLED in available():
        pytest.skip(f"SKIPPED, NOT TESTED: somebody has loaded {COUPLED} on this machine")
    source = (Path(__file__).parents[2] / "algorithms" / "template-coupled.c").read_text(encoding="utf-8")
    file = tmp_path / "template-cox.c"
    file.write_text(source.replace("template_coupled", "template_cox").replace("TEMPLATE_COUPLED", "TEMPLATE_COX"))
    done = lab("load", str(file), "--pin")
    assert (done.returncode, COUPLED in done.stdout) == (0, True), done.stderr
    again = lab("load", str(file), "--pin")
    assert (again.returncode, again.stdout) == (0, f"already loaded: {COUPLED}\n"), again.stderr
    done = lab("load", "template-coupled", "--pin")
    assert done.returncode == 2
    assert f"{COUPLED} is pinned, but another program" in done.stderr
    assert "cc unload" in done.stderr
    assert lab("unload", "template-coupled").returncode == 0


def test_what_something_else_keeps_registered_is_not_called_unloaded(lab: Lab) -> None:
    assert lab("load", "template", "--pin").returncode == 0
    other = "/sys/fs/bpf/other"
    subprocess.run([*lab.before, "ln", f"{PINS}/{NAME}", other], check=True)
    done = lab("unload", "template")
    assert (done.returncode, done.stdout) == (2, ""), done.stdout
    assert f"{NAME} is still registered, although its pin is removed: it is held by an unseen process" in done.stderr
    assert NAME in available()
    subprocess.run([*lab.before, "rm", other], check=True)


def held_by_a_descriptor(lab: Lab, keeper: int, _: Path) -> tuple[subprocess.Popen[str], str]:
    words = ["sh", "-c", f"exec 9< /proc/{keeper}/ns/net; echo ready; exec sleep 600"]
    child = subprocess.Popen([*lab.before, *words], stdout=subprocess.PIPE, text=True)
    return child, f"/proc/{child.pid}/fd/9"


def mounted_at_a_name_with_a_blank(lab: Lab, keeper: int, folder: Path) -> tuple[subprocess.Popen[str], str]:
    place = folder / "two words"
    place.touch()
    words = ["sh", "-c", f"mount --bind /proc/{keeper}/ns/net '{place}' && echo ready"]
    return subprocess.Popen([*lab.before, *words], stdout=subprocess.PIPE, text=True), str(place)


def of_a_thread(lab: Lab, keeper: int, _: Path) -> tuple[subprocess.Popen[str], str]:
    text = """
import ctypes, os, sys, threading, time
def enter():
    libc = ctypes.CDLL(None, use_errno=True)
    assert libc.setns(os.open(sys.argv[1], os.O_RDONLY | os.O_CLOEXEC), 0x40000000) == 0
    os.closerange(3, 64)
    print(threading.get_native_id(), flush=True)
    time.sleep(600)
threading.Thread(target=enter).start()
"""
    words = [sys.executable, "-c", text, f"/proc/{keeper}/ns/net"]
    return subprocess.Popen([*lab.before, *words], stdout=subprocess.PIPE, text=True), "process"


@pytest.mark.parametrize("hold", [held_by_a_descriptor, mounted_at_a_name_with_a_blank, of_a_thread])
def test_a_default_is_seen_in_a_namespace_without_processes(lab: Lab, tmp_path: Path, hold: Any) -> None:
    """It went on using the algorithm after `cc unload`, which no list showed."""
    assert lab("load", "template", "--pin").returncode == 0
    host = k.Host()
    holder = None
    try:
        subprocess.run(host.inside("sh", "-c", SET_DEFAULT.format(NAME)), check=True)
        holder, place = hold(lab, host.keeper.pid, tmp_path)
        assert holder.stdout is not None
        said = holder.stdout.readline().strip()
        if said != "ready":
            place = f"process {said} (python"
        host.stop()
        done = lab("unload", "template")
        assert done.returncode == 2, done.stdout
        assert f"is the default congestion control of 1 network namespace: that of {place}" in done.stderr
        (remedy,) = re.findall("hint: set another default there first: (.*)", done.stderr)
        subprocess.run([*lab.before, "sh", "-c", remedy], check=True, capture_output=True)
        done = lab("unload", "template")
        assert (done.returncode, done.stdout) == (0, f"unloaded {NAME}\n"), done.stderr
    finally:
        host.stop()
        if holder is not None:
            holder.kill()
            holder.communicate()


DETACH = """
import ctypes, os, sys
call = ctypes.CDLL(None, use_errno=True).syscall
path = ctypes.create_string_buffer(sys.argv[1].encode())
number, OBJ_GET, LINK_DETACH = int(sys.argv[2]), 7, 34
get = (ctypes.c_uint64 * 16)(ctypes.addressof(path))
link = call(number, OBJ_GET, ctypes.byref(get), 24)
assert link >= 0, os.strerror(ctypes.get_errno())
detach = (ctypes.c_uint32 * 32)(link)
if call(number, LINK_DETACH, ctypes.byref(detach), 4):
    sys.exit(os.strerror(ctypes.get_errno()))
"""


def test_a_pin_whose_link_was_detached_is_in_nobodys_way(lab: Lab) -> None:
    """`cc load` failed because of it, `cc list` did not show it, and `cc unload` said that nothing was loaded."""
    bpf = {"x86_64": 321, "aarch64": 280}.get(platform.machine())
    if bpf is None:
        pytest.skip("SKIPPED, NOT TESTED: the number of bpf(2) on this machine is not known here")
    for again in (("load", "template", "--pin"), ("unload", "template")):
        assert lab("load", "template", "--pin").returncode == 0
        words = [*lab.before, sys.executable, "-c", DETACH, f"{PINS}/{NAME}", str(bpf)]
        detached = subprocess.run(words, capture_output=True, text=True, check=False)
        if "not supported" in detached.stderr:
            pytest.skip("SKIPPED, NOT TESTED: this kernel cannot detach the link of a congestion control")
        assert detached.returncode == 0, detached.stderr
        assert gone()
        done = lab(*again)
        assert done.returncode == 0, done.stderr
        assert (NAME in available()) == (again[0] == "load")
        if again[0] == "load":
            assert lab("unload", "template").returncode == 0
    assert f"removed the pin of {NAME}, which had been detached" in done.stdout
    done = lab("unload", "template")
    assert (done.returncode, f"{NAME} is not loaded" in done.stderr) == (2, True)


def test_an_unloaded_algorithm_can_be_loaded_at_once(lab: Lab) -> None:
    for _ in range(5):
        done = lab("load", "template", "--pin")
        assert done.returncode == 0, done.stderr
        assert lab("unload", "template").returncode == 0
        assert NAME not in available()


def test_what_a_process_holds_does_not_keep_the_others_from_being_unloaded(lab: Lab) -> None:
    command = subprocess.Popen(lab.words("load", "template"), stdout=subprocess.PIPE, text=True)
    assert command.stdout is not None
    with command.stdout:
        assert command.stdout.readline() == f"loaded: {NAME}\n"
        assert lab("load", "template-coupled", "--pin").returncode == 0
        done = lab("unload", "--all", "--json")
        assert (done.returncode, json.loads(done.stdout)["unloaded"]) == (0, [COUPLED])
        assert f"warning: {NAME} stays: it is held by process " in done.stderr
        # It said that none was loaded.
        assert lab("unload", "--all").stdout == "no algorithm was unloaded\n"
        command.send_signal(signal.SIGINT)
        assert command.wait(20) == 0


def template(folder: Path, name: str) -> Path:
    """A C file with the template under another name."""
    source = (Path(__file__).parents[2] / "algorithms" / "template.c").read_text(encoding="utf-8")
    word = name.replace("-", "_")
    file = folder / f"{name}.c"
    file.write_text(source.replace("template", word).replace("TEMPLATE", word.upper()), encoding="utf-8")
    return file


@pytest.mark.parametrize("by_path", [False, True])
def test_what_was_loaded_from_a_file_is_unloaded_by_its_name_or_path(lab: Lab, tmp_path: Path, by_path: bool) -> None:
    """The path, which `cc load` takes, was no algorithm for `cc unload`."""
    file = template(tmp_path, "my-own-template")
    done = lab("load", str(file), "--pin")
    assert done.returncode == 0, done.stderr
    assert "lab_my_own_temp" in available()
    done = lab("unload", str(file) if by_path else "my-own-template")
    assert (done.returncode, done.stdout) == (0, "unloaded lab_my_own_temp\n"), done.stderr


def test_files_with_the_same_name_in_the_kernel_are_told_apart_before_one_is_loaded(lab: Lab, tmp_path: Path) -> None:
    """The second one was refused because of the first, which the hint took for somebody else's."""
    files = [str(template(tmp_path, f"my-own-template-{number}")) for number in (1, 2)]
    done = lab("load", *files)
    assert (done.returncode, done.stdout) == (2, "")
    said = "my-own-template-1 and my-own-template-2 have the same name in the kernel: lab_my_own_temp"
    assert said in done.stderr
    assert "give one of the files a shorter name" in done.stderr
    assert "lab_my_own_temp" not in available()


def test_a_name_that_is_unknown_comes_with_what_is_loaded(lab: Lab) -> None:
    """It came with the names of all algorithms, most of which nobody had loaded."""
    assert lab("load", "template", "--pin").returncode == 0
    for name, near in (("nothing-like-it", ""), ("tempalte", 'did you mean "template"? ')):
        done = lab("unload", name)
        assert done.returncode == 2
        assert f"hint: {near}loaded by operators: {NAME}" in done.stderr
    assert lab("unload", "template").returncode == 0


def test_pins_on_a_read_only_file_system_are_not_taken_for_those_of_others(lab: Lab) -> None:
    """The kernel opens no pin there, so that all were held by "a pin in another mount namespace"."""

    def remount(how: str) -> None:
        words = ["mount", "-o", f"remount,{how}", "/sys/fs/bpf"]
        subprocess.run([*lab.before, *words], check=True)

    assert lab("load", "template", "--pin").returncode == 0
    remount("ro")
    for words in (("load", "template", "--pin"), ("load", "template-coupled", "--pin"), ("unload", "template")):
        done = lab(*words)
        assert (done.returncode, done.stdout) == (2, ""), words
        assert "/sys/fs/bpf is mounted read-only" in done.stderr
        assert "hint: mount -o remount,rw /sys/fs/bpf\n" in done.stderr
    done = lab("unload", "--all")
    assert "no algorithm was unloaded\n" in done.stdout
    assert "another mount namespace" not in done.stderr
    assert "/sys/fs/bpf is mounted read-only" in lab("list").stdout
    assert NAME in available()
    assert COUPLED not in available()
    remount("rw")
    assert lab("unload", "template").returncode == 0


def test_the_name_of_a_process_does_not_reach_the_terminal_as_it_is(lab: Lab) -> None:
    """Whoever may make a network namespace could colour root's terminal, and add lines to a message."""
    text = """
import ctypes, sys
ctypes.CDLL(None).prctl(15, b"\\x1b[31ma\\nb", 0, 0, 0)
open("/proc/sys/net/ipv4/tcp_congestion_control", "w").write(sys.argv[1])
print("ready", flush=True)
sys.stdin.read()
"""
    assert lab("load", "template", "--pin").returncode == 0
    words = ["unshare", "-n", sys.executable, "-c", text, NAME]
    child = subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    try:
        assert child.stdout is not None
        assert child.stdout.readline() == "ready\n"
        done = lab("unload", "template")
        assert done.returncode == 2
        assert f"that of process {child.pid} (?[31ma?b)\n\nhint: set another default" in done.stderr
        assert "\x1b" not in done.stderr
    finally:
        child.communicate()
    assert lab("unload", "template").returncode == 0


def test_the_list_shows_how_an_algorithm_was_loaded(lab: Lab) -> None:
    assert lab("load", "template", "--pin").returncode == 0
    assert (lab.entry()["counts"], lab.entry()["params"]) == ("packets", {})
    assert lab("unload", "template").returncode == 0
    done = lab("load", "template", "--pin", "--param", "increase=2.5", "--profile", "linux-pre4")
    assert done.returncode == 0, done.stderr
    assert (lab.entry()["counts"], lab.entry()["params"]) == ("ACKs", {"increase": "2.5"})
    assert "increase=2.5" in lab("list").stdout
    assert lab("unload", "template").returncode == 0


@pytest.mark.parametrize(
    ("options", "wanted"),
    [
        (["--param", "increase=65"], "parameter increase of template: 65 (wanted a number from 0.00098 to 64)"),
        (["--param", "growth=1"], "template has no parameter growth (it has: increase, decrease)"),
        (["--profile", "linux"], "one of: rfc, linux-acked, linux-legacy, linux-pre4"),
    ],
)
def test_what_cannot_be_loaded_is_an_error_that_says_what_can(options: list[str], wanted: str) -> None:
    k.program()
    command = program("cc", "load", "template", *options)
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, wanted in done.stderr) == (2, True), done.stderr


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("unload",), "cc unload: no name, and no --all\n\nhint: `mptcplab cc unload --help` shows what it takes"),
        (("unload", "lia", "--all"), "cc unload: --all and names exclude each other: lia"),
        (("persist",), "cc persist: no name, and no --remove"),
        (("persist", "lia", "--remove"), "cc persist: --remove and names exclude each other: lia"),
        (("persist", "--remove", "--profile", "rfc"), "--remove and --profile exclude each other"),
        (("load", "lia", "--connections", "9999999999"), "hint: `mptcplab cc load --help` shows what it takes"),
        (("load", "--", "--lia"), 'no algorithm "--lia"'),
        (("lod",), "hint: `mptcplab cc --help` shows what it takes"),
    ],
)
def test_errors_name_the_command_that_was_typed(words: tuple[str, ...], message: str) -> None:
    """They named the usage of the program behind it, mptcplab-kernel."""
    k.program()
    done = subprocess.run(program("cc", *words), capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (2, "")
    assert message in done.stderr
    assert "hint: " in done.stderr
    assert "mptcplab-kernel" not in done.stderr


@pytest.mark.skipif(Path("/run/systemd/system").is_dir(), reason="it would install a unit")
@pytest.mark.parametrize("typed", ["mptcplab", "mptcplab-kernel"])
def test_a_remedy_names_the_command_that_was_typed(typed: str) -> None:
    words = ["cc", "persist", "lia"]
    command = program(*words) if typed == "mptcplab" else [str(k.program()), *words]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert f"make its init system run `{typed} cc load --pin NAME...` at boot" in done.stderr


def test_the_unit_is_not_printed_as_json() -> None:
    done = subprocess.run(
        [k.program(), "cc", "persist", "--print", "--json", "olia"], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == "error: --print prints the unit, which is no JSON: --json\n\nhint: leave one of them out\n"


def test_persist_stores_the_options_of_load() -> None:
    k.program()
    words = ["persist", "ewtcp", "--print", "--param", "weight=0.25", "--profile", "linux-legacy"]
    done = subprocess.run(program("cc", *words), capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "cc load --pin --param=ewtcp.weight=0.25 --profile=linux-legacy --connections=4096 ewtcp\n" in done.stdout


def test_either_all_named_algorithms_are_loaded_or_none(lab: Lab) -> None:
    done = lab("load", "template", "no-such-algorithm", "--pin")
    assert done.returncode == 2
    assert 'no algorithm "no-such-algorithm"' in done.stderr
    assert NAME not in available()


def test_a_name_that_is_taken_is_an_error_and_the_holder_stays(lab: Lab) -> None:
    assert lab("load", "template", "--pin").returncode == 0
    done = lab("load", "template")
    assert done.returncode == 2
    assert NAME in done.stderr
    assert NAME in available()
    assert json.loads(lab("unload", "--all", "--json").stdout)["unloaded"] == [NAME]


def test_the_api_runs_the_same_program() -> None:
    k.program()
    k.need_root()
    assert isinstance(mptcplab.cc_list(), list)
    with pytest.raises(mptcplab.EngineError, match='no algorithm "no-such-algorithm"'):
        mptcplab.cc_load("no-such-algorithm")
