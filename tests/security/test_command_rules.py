"""Rules about commands: five hundred hostile ones and more, of which none slips through a rule that allows."""

import asyncio
import subprocess
import tempfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.security.hostile_commands import ALLOWED, DENIED, HARMLESS, ORDINARY, VARIANTS, hostile

from toolwire import Tier, ToolCall, ToolDefinition
from toolwire.builtin.run_command import CommandSettings
from toolwire.builtin.toolsets import command_tools
from toolwire.execution.executor import ToolExecutor
from toolwire.execution.registry import ToolRegistry
from toolwire.policy.policy import Allow, Ask, Command, Context, Deny, Policy, Rule
from toolwire.policy.session import Session
from toolwire.policy.shell_text import simple_commands

RUN = ToolDefinition("execute_command", tier=Tier.RUN)
CONTEXT = Context(tier=Tier.RUN)
LINES = list(hostile())


def policy(name: str) -> Policy:
    rule = Rule("allow", "execute_command", {"command": ALLOWED[name]})
    return Policy((rule,), ask_by_default=frozenset({Tier.RUN}))


def test_there_are_many_of_many_kinds() -> None:
    distinct = {(allowed, repr(line)) for allowed, _, line in LINES}
    assert len(distinct) >= 1_500
    assert len({family for _, family, _ in LINES}) >= 15


@pytest.mark.mission("C37")
def test_no_hostile_command_slips_through_a_rule_that_allows() -> None:
    slipped = [
        (allowed, family, line)
        for allowed, family, line in LINES
        if isinstance(policy(allowed).decide(ToolCall("execute_command", {"command": line}), RUN, CONTEXT), Allow)
    ]
    assert slipped == []


@pytest.mark.parametrize(("name", "line"), ORDINARY)
def test_ordinary_commands_are_allowed(name: str, line: Any) -> None:
    assert ALLOWED[name].surely(line)


@pytest.mark.parametrize(
    "line",
    [
        *("npm rum x", "npm urn x", "npm t", "npm c set script-shell ./x", "npm exe x", "yarn x", "pnpm x", "yarn t"),
        *("gh extension exec x", "gh alias set a b", "ip netns exec a x", "ip net exec a x", "openssl engine x"),
        *("cargo r", "bundle e x", "bundle exe x", "pipenv run x", "conda run x", "pdm run x"),
    ],
)
def test_other_names_of_what_runs_code_have_to_be_named_too(line: str) -> None:
    program, subcommand, *_ = line.split()
    assert not Command((program,)).surely(line)
    assert Command((program, subcommand)).surely(line)


@pytest.mark.parametrize("line", ["npm ls", "npm i x", "yarn add x", "pnpm install", "cargo build", "bundle list"])
def test_other_subcommands_do_not(line: str) -> None:
    assert Command((line.split()[0],)).surely(line)


def test_none_of_them_runs(tmp_path: Path) -> None:
    """The same through the executor and the tool itself, even with a shell; whatever runs leaves a trace."""
    programs, root = tmp_path / "programs", tmp_path / "root"
    programs.mkdir()
    root.mkdir()
    names = {words.split()[0] for words in ALLOWED} | {"touch", "rm", "curl", "sudo", "sh", "bash"}
    for name in names:
        (programs / name).write_text(f"#!/bin/sh\necho {name} >> {tmp_path}/ran\n")
        (programs / name).chmod(0o755)
    settings_ = CommandSettings(shell=str(programs / "sh"), environment={"PATH": str(programs)})
    (tool,) = command_tools(root, settings=settings_)

    async def run() -> list[Any]:
        results = []
        for allowed, _, line in LINES:
            registry = ToolRegistry()
            registry.register(tool, requires_confirmation=False)
            executor = ToolExecutor(registry, policy=policy(allowed))
            calls = [ToolCall("execute_command", {"command": line}, "1")]
            results += await executor.execute(calls, Session(tier=Tier.RUN))
        return results

    assert not any(result.success for result in asyncio.run(run()))
    assert not (tmp_path / "ran").exists()


@pytest.mark.parametrize("name", VARIANTS)
def test_rules_that_deny_catch_variants(name: str) -> None:
    denying = Policy((Rule("deny", "execute_command", {"command": DENIED[name]}),))
    missed = [
        line
        for line in VARIANTS[name]
        if not isinstance(denying.decide(ToolCall("execute_command", {"command": line}), RUN, CONTEXT), Deny)
    ]
    assert missed == []


UNCLEAR = r"""
git -c alias.x='!rm a' x
git -calias.x='!rm a' x
git config alias.x '!rm a'
git -c core.pager=./x log
git -c core.sshCommand=./x fetch
git --exec-path=. x
git grep -Orm x
git grep --open-files-in-pager=rm x
GIT_SSH_COMMAND='rm a' git fetch
PAGER=./x man ls
BASH_ENV=x bash -c ls
LD_PRELOAD=./x ls
env -iS'rm a'
sed s/x/rm/e x
sed 1e./x y
tar -cf x y --checkpoint=1 --checkpoint-action=exec=./x
tar --to-command=./x -xf y
tar -I ./x -xf y
ssh -o ProxyCommand='rm a' host
scp -o ProxyCommand=./x y host:
rsync -e ./x y host:
sort --compress-program=./x y
gcc -wrapper rm,a x.c
socat EXEC:rm,x -
less '+!rm a' x
man -P ./x ls
vim -c ':!rm a' x
ed x
make
make SHELL=rm a
make -C sub
npm run x
npm test
npm exe x
npm --prefix sub test
yarn x
yarn dlx x
pnpm exec x
pnpm --dir sub dlx x
sudo yarn x
git -C sub submodule foreach x
rbenv exec x
flatpak run x
mix x
lein x
m4 x
linux64 make
ninja
pytest
cargo run
go run x.go
dotnet run
docker run alpine x
pip install .
apt-get -o X::Pre-Invoke::=./x update
bash x
sh ./x
. ./x
source x
./x
sub/x a
sudo ./x
sudo python x.py
nohup make
python x.py
python3 -c 'import os; os.remove("a")'
perl -e 'unlink "a"'
node x.js
ruby x.rb
julia x.jl
Rscript x.R
ipython -c '!rm a'
elixir x.exs
true && make
echo x | python
if true; then make; fi
git commit -m 'add x'
git -C sub commit
git --namespace status commit
git checkout main
git merge x
git push
git pull
git am x
git branch x
git diff --ext-diff
cd sub && git commit -am x
terraform apply -auto-approve
tofu destroy
pulumi up
ansible-playbook site.yml
helm install a b
packer build x.pkr.hcl
serverless deploy
pre-commit run
husky
lint-staged
npm ci
npm install
npm i x
npm --prefix sub install
yarn
yarn --version
yarn add x
pnpm install
cargo build
cargo install --path .
go build ./...
composer install
bundle install
gem install x
poetry install
eslint .
prettier x
jest
vitest
webpack
mypy src
sphinx-build docs out
certbot renew
systemctl start x
docker compose up
docker build .
crond
cd sub && make
cd sub; ./configure
pushd sub && npm test
(cd sub && make)
{ make; }
ls && unknown-program
ls | unknown-program
echo "$(unknown-program)"
echo `make`
echo "`make`"
cat <(make)
ls > >(make)
PATH=.; ls
PATH=.:$PATH
A=1 ls
env PAGER=./x man ls
find . -exec ./x {} +
find . -name a -ok make ;
fd -x make
fd --exec ./x
xargs -n 1 make
xargs -r make
sudo -n make ls
sudo -u root make
timeout -s KILL 5 make
nice -n 5 make
tar xIf ./x y
tar -cIf ./x y z
rg --pre ./x word
rsync --rsync-path=./x a h:b
wget -e use_askpass=./x y
curl -K x
gcc @x a.c
gcc -fplugin=./x.so a.c
$CC x
ls1
LS
/tmp/ls
~/bin/ls
ls() { make; }; ls
ls () { make; }
a=(x)
'if' ls
if "then" ls
\\2>&1
ls2>&12>&1
sudo <&- make
sudo >&2- make
sudo >- make
echo 'not closed
echo "not closed
echo $(not closed
env -Smake
env --split-string=make
strace '-o|make' ls
cat commands | parallel
parallel ls \; make
cat x | sudo -s
unshare < x
fakeroot < x
fd --exec=make
fd -xmake
fd -HX make
tar xf a --use=make
tar xf a --to-c=make
tar cf a b --checkpoint=1 --checkpoint-act=exec=make
git grep --open=make x
git grep -nOmake x
rsync -ave ./x a h:
scp -rS make a h:
scp -ro ProxyCommand=make a h:
zip -qTT make a b
wget -qe use_askpass=make x
wget --execute=use_askpass=make x
wget --use-ask=make x
curl -sK x y
gcc --specs=x a.c
gcc --prefix=x a.c
clang --ld-path=make a.c
split --filt=make a
sort --c=make a
sdiff --diff-p=make a b
install -s --strip-p=make a b
apt list -o Dir::Bin::dpkg=make
printf -v PATH x; ls
test -v 'a[$(make)]'
[ -v 'a[$(make)]' ]
test -v a[x]
test -R a
echo $'\'' ; make #'
echo "${x:-"';"}" ; make #'
echo ${x:- #} ; make
echo "`echo \"; make #\"`"
case ls in ls) make;; esac
coproc ls { make; }
ls >&3-#x ; make
find . -exec {} +
ls | xargs -I{} {}
rg {--pre,make} x
rg $(ls){--pre,make} x
rg -{-pre,x} make
echo a{1..3}
""".strip().splitlines()
UNCLEAR += [
    "cat <<E\necho '\nE\nmake #'",
    "cat <<-E\necho '\nE\nmake #'",
    "echo a\r#b ; make",
    ["[", "-v", "a", "]"],
    ["[", "-R", "a", "]"],
]


@pytest.mark.parametrize("line", UNCLEAR)
@pytest.mark.parametrize("effect", ["deny", "ask"])
def test_a_line_that_may_run_a_denied_command_unseen_asks(effect: Any, line: Any) -> None:
    rules = (Rule(effect, "execute_command", {"command": Command(("rm",))}), Rule("allow", "execute_command"))
    decision = Policy(rules).decide(ToolCall("execute_command", {"command": line}), RUN, CONTEXT)
    assert isinstance(decision, Ask | Deny)
    others = Policy(rules[1:]).decide(ToolCall("execute_command", {"command": line}), RUN, CONTEXT)
    assert isinstance(others, Allow), "the question is about the rule"


@pytest.mark.parametrize("line", ["echo `ls `", 'echo "`ls `"', "`ls`", r"echo `echo \\\; make `"])
def test_a_line_with_backquotes_is_not_read(line: str) -> None:
    """Between them, backslashes count twice, which may hide the end of a command."""
    assert simple_commands(line) is None


@pytest.mark.parametrize(
    "line",
    [
        "rm.exe a",
        "RM.EXE a",
        "cmd /c rm.bat a",
        "=rm a",
        ["C:\\bin\\rm.exe", "a"],
        ["C:/bin/rm.cmd", "a"],
        r"C:\bin\rm.exe a",
        r"cmd /c C:\bin\rm a",
    ],
)
def test_a_denied_program_is_denied_as_windows_and_zsh_spell_it(line: Any) -> None:
    denying = Policy((Rule("deny", "execute_command", {"command": Command(("rm",))}),))
    assert isinstance(denying.decide(ToolCall("execute_command", {"command": line}), RUN, CONTEXT), Deny)
    assert not Command(("rm",)).surely(line)


@pytest.mark.parametrize("line", ["python build.py", "make test", ["python", "build.py"], ["make", "test"]])
def test_a_line_that_a_rule_allows_exactly_runs_beside_a_rule_that_denies(line: Any) -> None:
    words = tuple(line.split() if isinstance(line, str) else line)
    rules = (
        Rule("deny", "execute_command", {"command": Command(("rm",))}),
        Rule("allow", "execute_command", {"command": Command(words, exact=True)}),
    )
    assert isinstance(Policy(rules).decide(ToolCall("execute_command", {"command": line}), RUN, CONTEXT), Allow)
    assert isinstance(Policy(rules[:1]).decide(ToolCall("execute_command", {"command": line}), RUN, CONTEXT), Ask)


@pytest.mark.parametrize(
    "line",
    [
        *("ls -la", "git status", "git log --oneline", "git diff HEAD~1", "cat a b | sort", "grep -rn remove src"),
        *("find . -name '*.py'", "head -5 a", "less a", "cp a b", "cd a && ls", "time ls"),
        *("mkdir -p a/b", "sudo ls", "curl https://x", "tar xf a.tar", "tar -xzf a.tgz --strip-components=1"),
        *(["ls", "-la"], ["git", "status"], "/usr/bin/ls", "git log --grep 'confirm --form'"),
        *(
            "git -C sub status",
            "git --no-pager log",
            "git --git-dir=x diff",
            "git branch",
            "git branch -a",
            "git stash list",
            "git remote -v",
            "/bin/ls",
        ),
        *("rbenv versions", "flatpak list", "npm ls", "npm --prefix sub ls", "npm --version", "docker ps", "pip list"),
        *("ls > out.txt 2>&1", "ls &> out", "cat < in >> out", "wc -l <<< make", "echo 'a; make' | grep -E 'x|make'"),
        *('echo "Done; (make)"', "cat a && (cd b; ls)", "{ ls; cat a; }", "if test -f a; then ls; else pwd; fi"),
        *("sudo -u root ls", "timeout 5 ls", "timeout -k 1s 5m ls", "nice -n 5 ls", "env", "time -p ls", "nohup ls"),
        *(
            "find . -name '*.py' -exec cat '{}' +",
            "ls | xargs grep x",
            "xargs -n 1 -I '{}' cat '{}'",
            "# make",
            "ls # make",
        ),
        *("rsync -av --delete a b", "tar --totals -xf a", "wget -q -O x y", "git log -S word", "fd -e py"),
        *("printf '%s' a", "env -u A ls", 'echo "${x:-y}"', "echo $'\\n'", "ls 2>&1 >&-", "sort --reverse a"),
        *("echo a\\;b", 'echo "a\\"; make"', "ls \\\n -l", "echo ${x:-y}", "gcc -O2 -o a a.c", "rg -n 'a|b' src"),
        *("find . -exec cat {} +", "git show stash@{0}", "echo ${x,,}", "echo '{a,b}'", "{ echo a,b; }"),
    ],
)
def test_ordinary_lines_run_unasked_beside_a_rule_that_denies(line: Any) -> None:
    denying = Policy((Rule("deny", "execute_command", {"command": Command(("rm",))}),))
    assert isinstance(denying.decide(ToolCall("execute_command", {"command": line}), RUN, CONTEXT), Allow)


@pytest.mark.parametrize(("name", "line"), HARMLESS)
def test_rules_that_deny_leave_others_alone(name: str, line: Any) -> None:
    assert not DENIED[name].maybe(line)


_SHELL_PIECES = st.sampled_from(
    [
        *(
            "ls",
            "x",
            "cat",
            "if",
            "then",
            "fi",
            "echo",
            "A=1",
            " ",
            " ",
            " ",
            "\n",
            ";",
            "&",
            "|",
            "&&",
            "||",
            "<",
            ">",
        ),
        *(
            ">>",
            "<<<",
            "2>&1",
            "(",
            ")",
            "{",
            "}",
            "$(",
            "`",
            "'",
            '"',
            "\\",
            "#",
            "$",
            "$x",
            "!",
            "/",
            "./",
            "1",
            "-x",
        ),
        *(
            "time",
            "command",
            "builtin",
            "exec",
            "eval",
            "sh -c",
            "xargs",
            "find . -exec",
            "for a in",
            "do",
            "done",
            "()",
        ),
        *("$'", "${x:-", "<<x", "case ls in ls)", "esac", "coproc", "\r", ">&2-", "env -S"),
    ]
)


@settings(max_examples=300)
@given(st.lists(_SHELL_PIECES, max_size=12).map("".join))
def test_a_line_with_an_unknown_program_never_runs_unasked(text: str) -> None:
    """A shell with no programs at all reports each that it would run; of the pieces, two are plain programs."""
    denying = Policy((Rule("deny", "execute_command", {"command": Command(("rm",))}),))
    if not isinstance(denying.decide(ToolCall("execute_command", {"command": text}), RUN, CONTEXT), Allow):
        return
    watched = "PATH=/nowhere\ncommand_not_found_handle() { printf '%s\\0' \"$1\" >&9; }\n"
    with tempfile.TemporaryDirectory() as here, tempfile.TemporaryFile() as seen:
        script = f"exec 9>&{seen.fileno()}\n{watched}{text}\n"
        argv, descriptors = ["bash", "-c", script], [seen.fileno()]
        subprocess.run(argv, cwd=here, pass_fds=descriptors, stdin=-3, stdout=-3, stderr=-3, timeout=10, check=False)
        seen.seek(0)
        assert set(seen.read().decode().split("\0")[:-1]) <= {"ls", "cat", "xargs", "find", ""}, text


ANY = Command(("*",), options=("*",))
_PIECES = st.sampled_from(
    [
        *"ab =-+@.,:%^_/é\t\n\r\"'\\`$(){}[]*?~#!;&|<>",
        "a",
        " ",
        " ",
        "\u00a0",
        "\u200b",
        "$a",
        "=x",
        "a=b",
        "~a",
        "#a",
        "-x",
    ]
)


@settings(max_examples=300)
@given(st.lists(_PIECES, min_size=1, max_size=8).map("".join))
def test_what_surely_fits_is_what_a_shell_reads(text: str) -> None:
    """A real shell makes the same words of it, and nothing else."""
    if not ANY.surely(text):
        return
    script = f'show() {{ for word do printf "%s\\0" "$word"; done; }}\nshow {text}\n'
    said = subprocess.run(["sh", "-c", script], capture_output=True, check=True).stdout.decode()
    assert said.split("\0")[:-1] == text.split()


@pytest.mark.parametrize(
    "line",
    [
        "rm " * 20_000, "git -x " * 9_000, "a;" * 30_000, "'" * 60_000, "sh -c " * 10_000, "$(" * 30_000,
        '"\\"' * 15_000, ["rm"] * 30_000, ["sh", "-c", "x y " * 10_000], "sh -c '" * 9_000, "(" * 65_000,
    ],
    ids=lambda line: repr(line)[:12],
)  # fmt: skip
def test_long_commands_are_decided_about_in_short_time(line: Any) -> None:
    for rule in (Command(("rm", "-rf")), Command(("git", "push"), exact=True)):
        assert not rule.surely(line)
        rule.maybe(line)
        rule.is_unclear(line)
