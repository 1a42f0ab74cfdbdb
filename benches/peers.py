#!/usr/bin/env python3
"""Compares the simulator's speed with that of other packet simulators, on the workloads W1 to W4 of scenarios/bench.

    .venv/bin/python benches/peers.py --ns2
    .venv/bin/python benches/peers.py --peer 'htsim=./bench {workload} {seconds}' --rounds 11

ns-2 is Debian's package ns2, and benches/peers/ns2.tcl has its workloads. It has no MPTCP, and so no W2. Any other
simulator takes part as a command, in which {workload} becomes w1, w2, w3 or w4, and {seconds} the simulated time. The
command prints hops=N, the number of packets and ACKs that crossed a link, and ends with exit code 3 if it does not have
the workload.

For htsim, that command is a small program of your own, because htsim is a library: a Queue and a Pipe for each
direction of a link, a TcpSrc and a TcpSink for each flow, and for W2 a MultipathTcpSrc of type COUPLED_INC, which is
LIA, with two of each. Its sinks acknowledge every segment, as those of the bench scenarios do, so that it may print
twice the number of acknowledged segments (cumulative_ack() counts their bytes). Two things matter: ssthresh is 100
packets without set_ssthresh(), and there is no SACK. At 10 Gbit/s it therefore does not fill the link, and W4 compares
nothing.

Rounds are interleaved, so that a machine that slows down for a while does so for all. What counts is the CPU time of
whole processes, their start included.
"""

from __future__ import annotations

import argparse
import os
import re
import shlex
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from statistics import median, quantiles

ROOT = Path(__file__).parents[1]
OURS = "mptcplab"
NOT_THERE = 3


@dataclass(frozen=True)
class Workload:
    """A scenario of scenarios/bench, and how long it is simulated."""

    file: str
    seconds: int


WORKLOADS = {
    "w1": Workload("w1-one-reno.toml", 100),
    "w2": Workload("w2-two-bottlenecks.toml", 100),
    "w3": Workload("w3-thousand-flows.toml", 5),
    "w4": Workload("w4-ten-gigabit.toml", 4),
}


def ours(workload: str, seconds: int) -> list[str]:
    """The command that simulates a workload with mptcplab."""
    target = Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target"))
    scenario = ROOT / "scenarios/bench" / WORKLOADS[workload].file
    return [str(target / "release/speed"), str(scenario), f"duration={seconds} s", "warmup=0 s", "sample=off"]


def command(template: str, workload: str, seconds: int) -> list[str]:
    """The command of a peer."""
    return shlex.split(template.replace("{workload}", workload).replace("{seconds}", str(seconds)))


def hops_per_second(words: list[str]) -> float | None:
    """Packet-hops per CPU second (10^6) of a command; None if the program does not have the workload."""
    try:
        process = subprocess.Popen(words, stdout=subprocess.PIPE, text=True)
    except OSError as error:
        sys.exit(f"error: {words[0]}: {error.strerror}")
    assert process.stdout is not None
    text = process.stdout.read()
    _, status, used = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode == NOT_THERE:
        return None
    found = re.search(r"\bhops=(\d+)", text)
    if process.returncode != 0 or found is None:
        sys.exit(f"error: {shlex.join(words)}: exit code {process.returncode}, and it printed {text.strip()!r}")
    return int(found[1]) / (used.ru_utime + used.ru_stime) / 1e6


def compare(workload: str, peers: dict[str, str], rounds: int) -> None:
    """Print what one workload takes, here and elsewhere."""
    seconds = WORKLOADS[workload].seconds
    commands = {OURS: ours(workload, seconds)}
    commands |= {name: command(template, workload, seconds) for name, template in peers.items()}
    speeds: dict[str, list[float]] = {name: [] for name in commands}
    for _ in range(rounds):
        for name, words in commands.items():
            speed = hops_per_second(words)
            if speed is not None:
                speeds[name].append(speed)
    print(f"{workload}  {OURS:12} {median(speeds[OURS]):8.2f}")
    for name in peers:
        if not speeds[name]:
            print(f"{workload}  {name:12}     none")
            continue
        ratios = [mine / theirs for mine, theirs in zip(speeds[OURS], speeds[name], strict=True)]
        low, _, high = quantiles(ratios, n=4) if len(ratios) > 1 else ratios * 3
        print(
            f"{workload}  {name:12} {median(speeds[name]):8.2f}  "
            f"mptcplab is {median(ratios):.1f} times as fast (quartiles {low:.1f} and {high:.1f})"
        )


def main() -> None:
    """Parse the arguments and measure."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--ns2", action="store_true", help="compare with ns-2")
    parser.add_argument(
        "--peer", action="append", default=[], metavar="NAME=COMMAND", help="compare with any simulator"
    )
    parser.add_argument("--rounds", type=int, default=5, help="how often each command runs (default: 5)")
    parser.add_argument("--workload", choices=WORKLOADS, help="only this one")
    args = parser.parse_args()
    peers = {"ns-2": f"ns {ROOT / 'benches/peers/ns2.tcl'} {{workload}} {{seconds}}"} if args.ns2 else {}
    for peer in args.peer:
        name, found, template = peer.partition("=")
        if not found or not name or not template or name in {OURS, *peers}:
            example = "'htsim=./bench {workload} {seconds}'"
            parser.error(f"--peer {peer}: expected another NAME=COMMAND, such as {example}")
        peers[name] = template
    if not peers:
        parser.error("name a peer: --ns2, or --peer NAME=COMMAND")
    if args.rounds < 1:
        parser.error(f"--rounds {args.rounds}: expected at least 1")
    build = ["cargo", "build", "--quiet", "--release", "--locked", "-p", "mptcplab-bench", "--bin", "speed"]
    if subprocess.run(build, cwd=ROOT, check=False).returncode != 0:
        sys.exit("error: the benchmark does not compile, see above")
    print("million packet-hops per CPU second, medians")
    for workload in [args.workload] if args.workload else WORKLOADS:
        compare(workload, peers, args.rounds)


if __name__ == "__main__":
    main()
