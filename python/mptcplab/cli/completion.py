"""Completion for shells, as scripts that need no Python while someone types."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from mptcplab.capabilities import ENGINES

SHELLS = ("bash", "zsh", "fish")


@dataclass(frozen=True)
class Option:
    """An option: its names, the first line of its help, whether a value follows, and the values that are known."""

    names: tuple[str, ...]
    help: str
    takes_value: bool
    values: tuple[str, ...]


@dataclass(frozen=True)
class Command:
    """A command by its full name, with what completes its arguments: words, or files with a suffix."""

    name: str
    help: str
    options: tuple[Option, ...]
    words: tuple[str, ...]
    suffix: str


def commands(root: Any) -> list[Command]:
    """All commands of the command line (a Click group)."""
    from mptcplab import api

    algorithms = tuple(entry["name"] for entry in api.algorithms())
    schedulers = tuple(entry["name"] for entry in api.schedulers())
    values = {
        "--cc": algorithms,
        "--engine": tuple(ENGINES),
        "--engines": ("sim,kernel", "sim,vm", "sim,fluid"),
        "--profile": ("rfc", "linux-acked", "linux-legacy", "linux-pre4"),
    }
    words = {
        "scenarios": tuple(entry["name"] for entry in api.scenarios()),
        "algorithms": algorithms,
        "goals": algorithms,
        "cc load": algorithms,
        "cc unload": algorithms,
        "cc persist": algorithms,
        "schedulers": schedulers,
        "completion": SHELLS,
    }
    suffixes = {"run": "toml", "check": "toml", "agree": "toml", "kernels": "toml", "vectors": "json"}
    found = []
    for name, command in _walk(root):
        options = tuple(_option(param, values) for param in command.params if param.param_type_name == "option")
        help_option = Option(("-h", "--help"), "Show this message and exit.", False, ())
        first = (command.help or "").partition("\n")[0]
        found.append(Command(name, first, (*options, help_option), words.get(name, ()), suffixes.get(name, "")))
    return found


def _walk(group: Any, prefix: str = "") -> Iterator[tuple[str, Any]]:
    for name, command in group.commands.items():
        if hasattr(command, "commands"):
            yield from _walk(command, f"{prefix}{name} ")
        else:
            yield prefix + name, command


def _option(param: Any, values: Mapping[str, tuple[str, ...]]) -> Option:
    known = next((values[name] for name in param.opts if name in values), ())
    sentence = (param.help or "").partition(". ")[0].rstrip(".")
    return Option(tuple(param.opts), sentence, not param.is_flag, known)


def script(shell: str, root: Any) -> str:
    """The script for one of `SHELLS`."""
    return {"bash": _bash, "zsh": _zsh, "fish": _fish}[shell](commands(root))


def _groups(known: list[Command]) -> dict[str, list[Command]]:
    """Groups of commands by their name, such as `cc`."""
    groups: dict[str, list[Command]] = {}
    for command in known:
        group, blank, _ = command.name.partition(" ")
        if blank:
            groups.setdefault(group, []).append(command)
    return groups


def _top(known: list[Command]) -> list[str]:
    return list(dict.fromkeys(command.name.partition(" ")[0] for command in known))


def _bash(known: list[Command]) -> str:
    groups = _groups(known)
    cases = []
    for command in known:
        names = " ".join(name for option in command.options for name in option.names)
        valued = [option for option in command.options if option.takes_value]
        lines = [f"    {_quoted(command.name)})"]
        if valued:
            lines.append("      case $previous in")
            for option in valued:
                reply = f'_mptcplab_words "{" ".join(option.values)}"' if option.values else "_mptcplab_files ''"
                lines.append(f"        {'|'.join(option.names)}) {reply}; return ;;")
            lines.append("      esac")
        plain = (
            f'_mptcplab_words "{" ".join(command.words)}"' if command.words else f"_mptcplab_files '{command.suffix}'"
        )
        lines += [f'      if [[ $current == -* ]]; then _mptcplab_words "{names}"; else {plain}; fi', "      ;;"]
        cases.append("\n".join(lines))
    for group, members in groups.items():
        words = " ".join(command.name.partition(" ")[2] for command in members)
        cases.append(f'    {group}) _mptcplab_words "{words} --help" ;;')
    group_test = " || ".join(f"$command == {group}" for group in groups)
    return f"""\
# Completion of mptcplab for bash; written by `mptcplab completion bash`.
_mptcplab_words() {{
  mapfile -t COMPREPLY < <(compgen -W "$1" -- "$current")
}}
_mptcplab_files() {{
  compopt -o filenames 2>/dev/null
  mapfile -t COMPREPLY < <(compgen -d -- "$current"; compgen -f ${{1:+-X "!*.$1"}} -- "$current")
}}
_mptcplab() {{
  local current=${{COMP_WORDS[COMP_CWORD]}} previous=${{COMP_WORDS[COMP_CWORD - 1]}} command="" word
  for word in "${{COMP_WORDS[@]:1:COMP_CWORD - 1}}"; do
    [[ $word == -* ]] && continue
    if [[ -z $command ]]; then
      command=$word
      [[ {group_test} ]] || break
    else
      command="$command $word"
      break
    fi
  done
  case $command in
    "") _mptcplab_words "{" ".join(_top(known))} --help --version" ;;
{chr(10).join(cases)}
  esac
}}
complete -F _mptcplab mptcplab
"""


def _zsh(known: list[Command]) -> str:
    groups = _groups(known)
    described = [
        f"    {_quoted(_colon(command.name) + ':' + command.help)}" for command in known if " " not in command.name
    ]
    described += [f"    {_quoted(group + ':commands ' + group + ' ...')}" for group in groups]
    cases = []
    for command in known:
        specs = [spec for option in command.options for spec in _zsh_options(option)]
        if command.words:
            specs.append(_quoted(f"*:name:({' '.join(command.words)})"))
        else:
            glob = f" -g '*.{command.suffix}(-.)'" if command.suffix else ""
            specs.append(_quoted(f"*:file:_files{glob}"))
        cases.append(
            f"    {_quoted(command.name)})\n      _arguments \\\n        " + " \\\n        ".join(specs) + " ;;"
        )
    for group, members in groups.items():
        words = " ".join(command.name.partition(" ")[2] for command in members)
        cases.append(f"    {group}) compadd {words} ;;")
    group_names = "|".join(groups)
    return f"""\
#compdef mptcplab
# Completion of mptcplab for zsh; written by `mptcplab completion zsh`.
_mptcplab() {{
  local -a commands
  commands=(
{chr(10).join(described)}
  )
  if (( CURRENT == 2 )); then
    _describe 'command' commands
    return
  fi
  local name=$words[2]
  shift words; (( CURRENT-- ))
  case $name in
    {group_names})
      if (( CURRENT > 2 )); then
        name="$name $words[2]"
        shift words; (( CURRENT-- ))
      fi ;;
  esac
  case $name in
{chr(10).join(cases)}
  esac
}}
_mptcplab "$@"
"""


def _zsh_options(option: Option) -> list[str]:
    text = _bracket(option.help)
    value = ""
    if option.takes_value:
        value = f":value:({' '.join(option.values)})" if option.values else ":value:_files"
    return [_quoted(f"{name}[{text}]{value}") for name in option.names]


def _fish(known: list[Command]) -> str:
    lines = ["# Completion of mptcplab for fish; written by `mptcplab completion fish`.", "complete -c mptcplab -f"]
    top = _top(known)
    none = f"not __fish_seen_subcommand_from {' '.join(top)}"
    helps = {command.name: command.help for command in known}
    for name in top:
        about = _quoted(helps.get(name, f"commands {name} ..."))
        lines.append(f"complete -c mptcplab -n {_quoted(none)} -a {name} -d {about}")
    for group, members in _groups(known).items():
        words = " ".join(command.name.partition(" ")[2] for command in members)
        seen = f"__fish_seen_subcommand_from {group}; and not __fish_seen_subcommand_from {words}"
        lines.append(f"complete -c mptcplab -n {_quoted(seen)} -a {_quoted(words)}")
    for command in known:
        seen = "; and ".join(f"__fish_seen_subcommand_from {part}" for part in command.name.split())
        start = f"complete -c mptcplab -n {_quoted(seen)}"
        for option in command.options:
            names = " ".join(f"-l {name[2:]}" if name.startswith("--") else f"-s {name[1:]}" for name in option.names)
            value = ""
            if option.takes_value:
                value = f" -x -a {_quoted(' '.join(option.values))}" if option.values else " -r -F"
            lines.append(f"{start} {names}{value} -d {_quoted(option.help)}")
        if command.words:
            lines.append(f"{start} -a {_quoted(' '.join(command.words))}")
        else:
            lines.append(f"{start} -F")
    return "\n".join(lines) + "\n"


def _quoted(text: str) -> str:
    """A word in single quotes."""
    return "'" + text.replace("'", "'\\''") + "'"


def _colon(text: str) -> str:
    return text.replace(":", "\\:")


def _bracket(text: str) -> str:
    return text.replace("\\", "\\\\").replace("[", "\\[").replace("]", "\\]").replace(":", "\\:")
