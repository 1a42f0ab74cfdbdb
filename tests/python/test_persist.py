"""`mptcplab-kernel cc persist` with the real program, in a mount namespace in which systemd seems to run."""

from __future__ import annotations

import subprocess
from collections.abc import Callable

import kernel_program as k
import pytest

pytestmark = pytest.mark.kernel

UNIT = "/etc/systemd/system/mptcplab-cc.service"
# Root must own the program and all folders on the way to it, which holds for no checkout of a user.
PREPARE = """
set -e
mkdir -p /etc/systemd/system
mount -t tmpfs -o mode=0755 tmpfs /etc/systemd/system
mount -t tmpfs -o mode=0755 tmpfs /run
mount -t tmpfs -o mode=0755 tmpfs /usr/local
mkdir -p /run/systemd/system /usr/local/sbin /usr/local/bin
install -m 0755 "$PROGRAM" /usr/local/sbin/mptcplab-kernel
cat > /usr/local/bin/systemctl
chmod 755 /usr/local/bin/systemctl
PATH=/usr/local/bin:$PATH
set +e
"""
WORKS = "#!/bin/sh\nexit 0\n"
REFUSES = "#!/bin/sh\necho 'Failed: no bus' >&2\nexit 1\n"

Shell = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture
def shell() -> Shell:
    """Runs commands with a `systemctl` of the given text; what they change vanishes with their mount namespace."""
    program = k.program()
    k.need_root()

    def run(commands: str, systemctl: str = WORKS) -> subprocess.CompletedProcess[str]:
        words = ["unshare", "--mount", "sh", "-c", PREPARE + commands]
        environment = {"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "PROGRAM": str(program)}
        return subprocess.run(words, input=systemctl, capture_output=True, text=True, env=environment, check=False)

    return run


PERSIST = "/usr/local/sbin/mptcplab-kernel cc persist"


@pytest.mark.parametrize("umask", ["0000", "0077"])
def test_the_unit_is_roots_alone_whatever_the_umask(shell: Shell, umask: str) -> None:
    """With the umask 0, everybody could write what root executes at boot."""
    done = shell(f"(umask {umask}; {PERSIST} lia); stat -c %a:%U {UNIT}")
    assert done.stdout.splitlines()[-1] == "644:root", done.stderr


@pytest.mark.parametrize("systemctl", [WORKS, REFUSES])
@pytest.mark.parametrize("words", ["olia", "--remove"])
def test_a_masked_unit_stays_masked(shell: Shell, words: str, systemctl: str) -> None:
    done = shell(f"ln -s /dev/null {UNIT}; {PERSIST} {words}; echo $?; readlink {UNIT}", systemctl)
    assert done.stdout == "2\n/dev/null\n"
    assert f"{UNIT} is masked" in done.stderr
    assert "systemctl unmask mptcplab-cc.service" in done.stderr


def test_a_link_to_another_unit_is_not_replaced(shell: Shell) -> None:
    done = shell(f"ln -s /srv/mine.service {UNIT}; {PERSIST} olia; echo $?; readlink {UNIT}")
    assert done.stdout == "2\n/srv/mine.service\n"
    assert f"{UNIT} is a link to /srv/mine.service" in done.stderr


def test_a_unit_is_removed_again(shell: Shell) -> None:
    done = shell(f"{PERSIST} olia; {PERSIST} --remove; {PERSIST} --remove")
    assert f"removed {UNIT}" in done.stdout
    assert f"error: there is no {UNIT}" in done.stderr
