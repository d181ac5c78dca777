"""The commands in a text that a shell interprets, and what is known of their programs."""

from __future__ import annotations

import pytest

from toolwire.policy.known_programs import RUNS, has_unseen_command, is_plain, launched
from toolwire.policy.policy import Command
from toolwire.policy.shell_text import simple_commands


@pytest.mark.parametrize(
    ("text", "commands"),
    [
        ("rm \\\n-rf x", [["rm", "-rf", "x"]]),
        ("ls 2>/dev/null", [["ls"]]),
        ("ls 2 >f", [["ls", "2"]]),
        ("ls >f 2>&1 x", [["ls", "x"]]),
        ("ls 2>&- x", [["ls", "x"]]),
        ("ls <>f x", [["ls", "x"]]),
        ("cat <<<word x", [["cat", "x"]]),
        ("diff <(ls a) b", [["ls", "a"], ["diff", "$", "b"]]),
        ("tee >(wc) <f", [["wc"], ["tee", "$"]]),
        ('echo "a $(ls b) c"', [["ls", "b"], ["echo", "a $ c"]]),
        ("(ls; pwd)", [["ls"], ["pwd"], [""]]),
        ("ls # rm x\npwd", [["ls"], ["pwd"]]),
        ("ls a#b", [["ls", "a#b"]]),
        ("ls ${x}", [["ls", "${x}"]]),
        ("r''m x", [["rm", "x"]]),
        (r"r\m x", [["rm", "x"]]),
    ],
)
def test_the_words_of_commands(text: str, commands: list[list[str]]) -> None:
    assert simple_commands(text) == commands


@pytest.mark.parametrize(
    "text",
    [
        *("cat <<E\n'\nE\nrm x", "cat <<-E\n", "ls `pwd`", "ls\rrm", "f() { rm x; }", "ls 'a", 'ls "a', 'echo "$(ls"'),
        *("ls $(pwd", "ls )", "echo a$'b\\' 'c'", "echo ${x:-$(rm y)}", 'echo "${x:-"y"}"', "{rm,x}", "rm {1..3}"),
        *('"if" ls', "a=(ls)", "$(" * 25 + "ls" + ")" * 25),
    ],
)
def test_what_cannot_be_read_with_certainty(text: str) -> None:
    assert simple_commands(text) is None


@pytest.mark.parametrize(
    "line",
    [
        *(
            "kubectl get pods",
            "kubectl -n web logs x",
            "terraform fmt",
            "tofu version",
            "git branch --list",
            "apt list",
        ),
        *("/usr/bin/ls", "docker image ls", "npm --prefix x ls", "systemctl status x"),
    ],
)
def test_programs_that_run_nothing_else(line: str) -> None:
    program, *operands = line.split()
    assert is_plain(program, operands)


@pytest.mark.parametrize(
    "line",
    [
        *("kubectl apply -f x", "terraform apply", "git branch new", "git --exec-path=x log", "./ls", "apt -o x list"),
        *("test -v x[$(y)]", "[ -v x[$(y)] ]", "[ -R x[$(y)] ]", "printf -v x[$(y)] z", "git -c x=y log"),
        *("sort --compress-prog x", "tar xIf x y", "tar -I x", "gcc -B x", "rsync -avze x", "fd -Hx rm", "gitk"),
    ],
)
def test_programs_that_may_run_something_else(line: str) -> None:
    program, *operands = line.split()
    assert not is_plain(program, operands)


@pytest.mark.parametrize(
    ("line", "commands"),
    [
        ("sudo -u root rm x", ["rm x"]),
        ("runuser -u user rm x", ["rm x"]),
        ("runuser -g group rm x", ["rm x"]),
        ("ionice -c 2 -n 0 rm x", ["rm x"]),
        ("timeout -s KILL 5m rm x", ["rm x"]),
        ("nice -n 0x10 rm", ["rm"]),
        ("flock --unknown rm", ["rm"]),
        ("flock --unknown rm x", ["rm x", "x"]),
        ("flock --unknown=rm x", ["x"]),
        ("find . -exec rm {} ;", ["rm {} ;"]),
    ],
)
def test_commands_that_a_launcher_may_run(line: str, commands: list[str]) -> None:
    program, *operands = line.split()
    assert [" ".join(words) for words in launched(program, operands)] == commands


@pytest.mark.parametrize("line", ["env -S rm", "env --s=rm", "sudo", "sudo -u root", "eval rm", "strace -o|rm ls"])
def test_launchers_whose_command_is_not_in_words_of_its_own(line: str) -> None:
    program, *operands = line.split()
    assert has_unseen_command(program, operands)


@pytest.mark.parametrize("program", RUNS)
def test_a_subcommand_that_runs_its_operands_has_to_be_named(program: str) -> None:
    for subcommand in RUNS[program]:
        assert not Command((program,)).surely(f"{program} {subcommand} x")
        assert Command((program, subcommand)).surely(f"{program} {subcommand} x")


def test_programs_with_subcommands_that_run_something() -> None:
    assert {"git", "npm", "docker", "kubectl", "go", "rbenv", "pyenv", "nodenv", "flatpak", "snap"} <= RUNS.keys()
