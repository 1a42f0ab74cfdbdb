"""The examples that stand in the help of every command, on its reference page and in the man page."""

from __future__ import annotations

from collections.abc import Mapping

# Commands with the lines that show them; the tests check their options.
EXAMPLES: Mapping[str, tuple[str, ...]] = {
    "run": (
        "mptcplab run dolia-scenario-1 --cc lia,olia --reps 10",
        "mptcplab run dolia-scenario-1 --sweep 'links.B1.loss=0.01 %..5 % log 7' --cc lia,olia,balia",
        "mptcplab run dolia-scenario-1 --cc lia,olia --set 'links.B1.queue=1 BDP' --engine sim,fluid",
        "mptcplab run two-paths.toml --reps 1000 --on dask:tcp://10.0.0.1:8786 --store s3://bucket/mptcplab",
        "mptcplab run two-paths.toml --reps 20 --out results/two-paths     # after --reps 5: makes 15 runs",
    ),
    "new": (
        "mptcplab new two-paths.toml --rates '10 Mbit/s, 5 Mbit/s' --delays '5 ms, 10 ms' --losses '0.1 %'",
        "mptcplab new --ask",
    ),
    "report": ("mptcplab report results/dolia-scenario-1",),
    "check": (
        "mptcplab check dolia-scenario-1",
        "mptcplab check dolia-scenario-1 --cc lia --sweep 'links.B1.delay=5 ms, 50 ms' --engine fluid",
    ),
    "merge": ("mptcplab merge results/lia results/olia --out results/both",),
    "compare": (
        "mptcplab compare results/before results/after",
        "mptcplab compare results/lia results/olia --metrics goodput,jain",
        "mptcplab compare results/both --cc lia,olia --report lia-olia.html",
    ),
    "ls": ("mptcplab ls", "mptcplab ls /data/studies --json"),
    "scenarios": ("mptcplab scenarios", "mptcplab scenarios dolia-scenario-1 > my-scenario.toml"),
    "algorithms": ("mptcplab algorithms", "mptcplab algorithms olia"),
    "schedulers": ("mptcplab schedulers", "mptcplab schedulers blest", "mptcplab schedulers --compare --quick"),
    "vectors": ("mptcplab vectors crates/mptcplab-cc/tests/data/vectors.json",),
    "reproduce": (
        "mptcplab reproduce all --quick",
        "mptcplab reproduce kim2021",
        "mptcplab reproduce lubna2021 --claim DOL-01",
        "mptcplab reproduce all --on dask:tcp://10.0.0.1:8786",
    ),
    "fidelity": ("mptcplab fidelity --quick --out /tmp/fidelity", "mptcplab fidelity --out-of-tree"),
    "goals": (
        "mptcplab goals lia --quick",
        "mptcplab goals 'ewtcp(weight=fair)' --seed 7",
        "mptcplab goals olia --engine vm --quick",
    ),
    "hunt": (
        "mptcplab hunt lia --property harms",
        "mptcplab hunt bbr --property starves,loses-share --evaluations 2000 --confirm vm",
    ),
    "agree": (
        "mptcplab agree dolia-scenario-1 --engines sim,fluid --cc lia",
        "mptcplab agree --all --engines sim,vm",
    ),
    "kernels": ("mptcplab kernels dolia-scenario-1 --kernels bookworm,trixie-backports --reps 2",),
    "doctor": ("mptcplab doctor", "mptcplab doctor --rate '100 Mbit/s' --rtt '50 ms'"),
    "schema": ("mptcplab schema > scenario.schema.json",),
    "walk": ("mptcplab walk --out walk --reps 5 --seed 3",),
    "docs": ("mptcplab docs --check",),
    "completion": (
        "mptcplab completion bash > ~/.local/share/bash-completion/completions/mptcplab",
        "mptcplab completion zsh > ~/.zfunc/_mptcplab",
        "mptcplab completion fish > ~/.config/fish/completions/mptcplab.fish",
    ),
    "man": ("mptcplab man > ~/.local/share/man/man1/mptcplab.1",),
    "cc load": (
        "sudo mptcplab cc load olia",
        "sudo mptcplab cc load ewtcp --param weight=fair --pin",
        "sudo mptcplab cc load ./mine.c",
    ),
    "cc list": ("sudo mptcplab cc list",),
    "cc unload": ("sudo mptcplab cc unload --all",),
    "cc persist": ("sudo mptcplab cc persist olia", "mptcplab cc persist olia --print"),
}


def epilog(command: str) -> str:
    """The examples as the last part of a help text, whose lines stay as they are."""
    lines = EXAMPLES[command]
    head = "Example:" if len(lines) == 1 else "Examples:"
    return "\b\n" + "\n".join([head, *(f"  {line}" for line in lines)])
