"""Programs by what they run: those that run others, and those that are known to run nothing but what a line names.

No list of programs that run others is complete. Where a rule denies commands, the list of plain programs counts: any
other program may run a command that the line does not show, from a script, a build, a hook or a configuration.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from toolwire.text.word_set import word_set

SHELLS = word_set("sh bash dash ash zsh ksh mksh csh tcsh fish pwsh powershell cmd busybox toybox")
LAUNCHERS = SHELLS | word_set("""
    env sudo doas su runuser pkexec xargs parallel nohup nice ionice chrt taskset time timeout stdbuf setsid watch
    strace ltrace gdb valgrind script flock unshare nsenter chroot fakeroot systemd-run at batch crontab ssh rsh mosh
    screen tmux command builtin exec eval source . trap entr find fd ld.so dbus-run-session python pypy perl ruby node
    nodejs deno bun php lua tclsh wish expect osascript java wscript m bc dc awk gawk mawk nawk sed ed ex vi vim nvim
    view emacs nano less more man sqlite psql mysql ftp sftp npx bunx pnpx uvx pipx
    rscript r julia ipython octave gnuplot ghci runghc runhaskell elixir iex erl escript scala groovy swift kotlin
    jshell guile sbcl clisp ocaml racket raku pwsh dotnet rustup setpriv setarch linux prlimit numactl
    cpulimit chpst softlimit choom capsh sg newgrp rlwrap unbuffer hyperfine perf proot bwrap firejail machinectl
    lxc vagrant ansible nix nix-shell guix direnv mise asdf socat nc ncat netcat start-stop-daemon run-parts
    logrotate faketime xvfb-run xdg-open ldd bind complete compgen mapfile readarray coproc
""")
"""Programs whose operands are programs to run, or text that can run some; without their version, as `m` for `m4`."""
VIEWERS = word_set("less more man")
"""Launchers that only show their operands, unless an option or `!` says otherwise."""
READERS = SHELLS | word_set("eval ssh rsh su watch script at batch parallel mosh")
"""Launchers that parse their operands as a shell does."""
INPUT_SHELLS = SHELLS | word_set("source . su")
"""Programs that may run commands from their input."""
PREFIXES = word_set("""
    env sudo doas su runuser pkexec xargs parallel nohup nice ionice chrt taskset time timeout stdbuf setsid strace
    ltrace flock unshare nsenter chroot fakeroot systemd-run command builtin exec busybox toybox
""")
"""Launchers whose first operand is usually the program to run."""
RENAMING = word_set("alias hash enable abbr")
"""Builtins that can give a command another name."""
LONG = {"r": word_set("--recursive"), "f": word_set("--force"), "d": word_set("--delete"), "a": word_set("--all")}
"""Options that have a short name with most programs; they may be cut short."""
RUNS = {
    "git": word_set("submodule bisect config filter-branch difftool mergetool rebase hook maintenance"),
    "npm": word_set("""
        run run-script rum urn exec x explore start test t tst restart stop config c set init create innit
        install-test it install-ci-test cit install-clean-test clean-install-test sit
    """),
    "gh": word_set("extension extensions ext alias codespace cs"),
    "ip": word_set("netns vrf"),
    "openssl": word_set("engine"),
    "docker": word_set("run exec compose build buildx container start"),
    "podman": word_set("run exec compose build container start"),
    "kubectl": word_set("exec run debug config"),
    "go": word_set("run generate tool test env"),
    "cargo": word_set("run r test t bench"),
    "uv": word_set("run tool"),
    "poetry": word_set("run shell config"),
    "pdm": word_set("run config"),
    "hatch": word_set("run shell test config env"),
    "rye": word_set("run config"),
    "pixi": word_set("run shell exec config"),
    "pipenv": word_set("run shell scripts"),
    "conda": word_set("run config"),
    "mamba": word_set("run config"),
    "micromamba": word_set("run config"),
    "bundle": word_set("exec e config"),
    "rbenv": word_set("exec"),
    "pyenv": word_set("exec"),
    "nodenv": word_set("exec"),
    "flatpak": word_set("run"),
    "snap": word_set("run"),
}
"""Subcommands that run their operands; a rule has to name them to allow them."""
RUNS_NOTHING = {
    "yarn": word_set("install add remove list outdated why audit info upgrade up"),
    "pnpm": word_set("install i add remove rm list ls outdated why audit update up"),
}
"""Subcommands of programs that run a script for any other word; a rule has to name all other words."""
CUTTING = word_set("npm bundle ip")
"""Programs that accept an abbreviated subcommand."""
PLAIN = word_set("""
    ls dir vdir cat tac head tail wc nl od hexdump xxd strings cut paste join comm sort uniq tr rev fold fmt column
    expand unexpand split csplit tee echo printf yes seq true false : test [ pwd cd chdir pushd popd dirs basename
    dirname realpath readlink stat file touch mkdir md rmdir rd rm del erase unlink mv move ren cp copy xcopy ln link
    install chmod chown chgrp umask dd truncate shred mktemp sync df du tree diff sdiff cmp grep egrep fgrep zgrep rg
    jq date cal uptime uname hostname whoami id groups users who w last tty printenv ps pgrep pidof kill pkill killall
    free vmstat iostat lsof ss netstat ifconfig ping traceroute dig host nslookup whois curl wget tar gzip gunzip zcat
    bzip2 bunzip2 bzcat xz unxz xzcat zip unzip zipinfo zstd unzstd lz4 md5sum sha1sum sha224sum sha256sum sha384sum
    sha512sum shasum cksum b2sum base32 base64 basenc iconv dos2unix unix2dos sleep wait jobs exit return break
    continue shift which where whereis type tput clear reset stty locale getconf lscpu lsblk lspci lsusb nproc arch
    rsync scp gcc cc g++ c++ clang clang++ ld as nm objdump readelf size ar ranlib gofmt rustfmt black ruff shellcheck
    numfmt factor expr look tsort apropos whatis logname getent chattr lsattr getfacl setfacl pathchk ! fi done esac }
""")
"""Programs that run nothing but themselves, apart from what options can name, by their exact names."""
_SUBCOMMANDS = {
    "git": word_set("""
        status log diff show blame annotate grep ls-files ls-tree rev-parse rev-list describe shortlog cat-file show-ref
        for-each-ref name-rev merge-base whatchanged cherry count-objects check-ignore check-attr diff-tree diff-index
        diff-files add rm mv restore clean version
    """),
    "npm": word_set("ls list ll la view info show outdated ping whoami search why explain fund root prefix bin"),
    "pnpm": word_set("ls list ll la why outdated licenses root bin"),
    "pip": word_set("list show freeze check"),
    "docker": word_set("ps images logs inspect version info pull push stop kill rm rmi top stats port history tag"),
    "podman": word_set("ps images logs inspect version info pull push stop kill rm rmi top stats port history tag"),
    "kubectl": word_set("get describe logs explain api-resources api-versions version top"),
    "cargo": word_set("search version"),
    "go": word_set("version doc"),
    "terraform": word_set("fmt version"),
    "tofu": word_set("fmt version"),
    "apt": word_set("list search show"),
    "systemctl": word_set("status list-units is-active is-enabled"),
    "rbenv": word_set("versions version"),
    "pyenv": word_set("versions version"),
    "flatpak": word_set("list info search"),
    "conda": word_set("list info search"),
}
"""Subcommands that run nothing that the line does not name: a commit runs hooks, and an installation runs scripts."""
_SYSTEM = word_set("/bin /sbin /usr/bin /usr/sbin /usr/local/bin /usr/local/sbin /opt/homebrew/bin")
_LISTS = {"git": word_set("branch tag remote stash reflog"), "docker": word_set("image volume network")}
_LISTING = word_set("-a -r -v -vv -l --list --all --remotes --show-current list show ls")
"""Subcommands that only list if no other words than these follow; else they change references, for which hooks run."""
_BEFORE_SUBCOMMAND = {
    "git": (word_set("-C --git-dir --work-tree"), word_set("--no-pager -P --no-optional-locks --version --help -v -h")),
    "npm": (word_set("--prefix -C"), word_set("--version -v --help -h --silent -s")),
    "pnpm": (word_set("--dir -C"), word_set("--version -v --help -h")),
    "kubectl": (word_set("-n --namespace"), word_set("--version --help -h")),
}
"""Options before a subcommand: those with a value in the next word, and those without."""
_ALONE = word_set("--version -version -V -v --help -help -h")
_PREFIX_VALUES = {
    "sudo": word_set("-u -g --user --group"),
    "doas": word_set("-u"),
    "runuser": word_set("-u -g"),
    "env": word_set("-u -C --unset --chdir"),
    "nice": word_set("-n --adjustment"),
    "ionice": word_set("-c -n -p"),
    "timeout": word_set("-s -k --signal --kill-after"),
    "xargs": word_set("-I -n -P -L -d -E -s -a"),
    "taskset": word_set("-c -p"),
    "stdbuf": word_set("-i -o -e"),
    "time": word_set("-f -o"),
}
"""Options of launchers whose value is the next word."""
_NUMBER = re.compile(r"(?:0x)?[0-9a-f.]*[0-9][0-9.]*[smhd%]?")
"""A priority, a mask of processors or a time in front of a program."""
EXECUTING = {
    "find": word_set("-exec -execdir -ok -okdir"),
    "fd": word_set("-x -X --exec --exec-batch"),
}
"""Options in front of a command whose words follow."""
_RUNNING_OPTION = re.compile(
    r"(?!--no-)--?[\w-]*(?:command|exec|program|pager|rsh|eval|action|wrapper|engine|filter|editor|config|plugin|script"
    r"|askpass|textconv|diff-tool|ext-diff|upload-pack|receive-pack|rsync-path|pre|hostname-bin)\b"
)
"""An option that names a program, by the words that such options have."""
_RUNNING_SHORT = {
    "git": ("-c",), "apt": ("-o", "-c"), "printf": ("-v",), "test": ("-v", "-R"), "[": ("-v", "-R"),
}  # fmt: skip
"""Options that name a program, or set what names one: a setting, a variable, or a subscript with a command in it."""
_RUNNING_LETTERS = {
    "git": "O", "scp": "oSFD", "sftp": "oSFD", "rsync": "e", "curl": "K", "wget": "e", "zip": "T", "fd": "xX",
}  # fmt: skip
"""Letters of such options that may be anywhere in a word of short options, as in `rsync -avze`."""
_RUNNING_LONG = {
    "git": ("--open-files-in-pager", "--filters", "--ext-diff"),
    "tar": (
        *("--use-compress-program", "--to-command", "--checkpoint-action", "--info-script", "--new-volume-script"),
        *("--rsh-command", "--rmt-command"),
    ),
    "sort": ("--compress-program",),
    "split": ("--filter",),
    "sdiff": ("--diff-program",),
    "install": ("--strip-program",),
    "wget": ("--execute", "--use-askpass", "--config"),
    "zip": ("--unzip-command",),
    "fd": ("--exec-batch",),
}
"""Long options that name a program, of programs that accept abbreviations of them."""
_TAR_GROUP = re.compile(r"-?[A-Za-z]*[IF][A-Za-z]*")
"""Short options of `tar` in one word, among them one that names a program; the first word needs no hyphen."""
_SHELLS_ALONE = word_set("sudo doas runuser pkexec flock unshare nsenter chroot fakeroot systemd-run")
"""Launchers that may run a shell, which reads commands from its input, if no word names a program."""
_ATTACHED = {
    "env": re.compile(r"-[A-Za-z0]*S|--s"),
    "strace": re.compile(r"-[A-Za-z]*(?:o[|!]|E)|--o[a-z]*=[|!]|--env"),
}
"""Options of launchers with a command, or a variable, in the same word."""
_COMPILERS = word_set("gcc cc g++ c++ clang clang++ ld")
_COMPILER_OPTION = re.compile(r"-B|--?specs|--prefix|--ld-path|-fuse-ld|-X|-W[lap],|@")
"""Options of compilers that name a program or a directory of programs, or that are given on to other programs."""


def is_plain(word: str, operands: Sequence[str]) -> bool:
    """Return whether a program with these operands is known to run nothing that they do not name.

    Args:
        word: its name, or its path in a directory of the system.
        operands: the words behind it.
    """
    directory, _, program = word.rpartition("/")
    if directory and directory not in _SYSTEM:
        return False
    if _names_program(program, operands):
        return False
    if program in VIEWERS:
        return not any(word[:1] in "-+" or "!" in word for word in operands)
    if program in EXECUTING or program in PLAIN:
        return True
    if program not in _SUBCOMMANDS:
        return False
    valued, flags = _BEFORE_SUBCOMMAND.get(program, (frozenset(), _ALONE))
    at = 0
    while at < len(operands) and operands[at][:1] == "-":
        name, has_value, _ = operands[at].partition("=")
        if name not in valued and operands[at] not in flags:
            return False  # the next word may be its value, or the subcommand
        at += 2 if name in valued and not has_value else 1
    if at >= len(operands) or operands[at] in _SUBCOMMANDS[program]:
        return True
    return operands[at] in _LISTS.get(program, ()) and _LISTING.issuperset(operands[at + 1 :])


def launched(program: str, operands: Sequence[str]) -> Iterator[Sequence[str]]:
    """Yield the commands that a launcher may run, of those that its words name.

    A word behind an unknown option may be its value or a program, so that there are two of them.
    """
    options = EXECUTING.get(program)
    if options is not None:
        yield from (operands[at + 1 :] for at, word in enumerate(operands) if word in options)
        return
    at = 0
    while at < len(operands):
        word = operands[at]
        if word in _PREFIX_VALUES.get(program, ()):
            at += 2
        elif word[:1] == "-":
            at += 1
            if "=" not in word and word != "--" and at + 1 < len(operands) and operands[at][:1] != "-":
                yield operands[at:]
                at += 1
        elif _NUMBER.fullmatch(word):
            at += 1
        else:
            yield operands[at:]
            return


def has_unseen_command(program: str, operands: Sequence[str]) -> bool:
    """Return whether a launcher may run a command that `launched` does not yield."""
    if program in READERS:
        return True  # it joins its words, so that any of them may separate commands
    attached = _ATTACHED.get(program)
    if attached is not None and any(map(attached.match, operands)):
        return True
    return program in _SHELLS_ALONE and next(iter(launched(program, operands)), None) is None


def _names_program(program: str, operands: Sequence[str]) -> bool:
    """Return whether an option makes a program run another one."""
    short, letters = _RUNNING_SHORT.get(program, ()), _RUNNING_LETTERS.get(program, "")
    for word in operands:
        if program in EXECUTING and word in EXECUTING[program]:
            continue  # its command is in words of its own
        if program != "find" and (_RUNNING_OPTION.match(word) or word.startswith(short or "\0")):
            return True
        name = word.partition("=")[0]
        if name[:2] == "--" and len(name) > 2:
            if any(option.startswith(name) for option in _RUNNING_LONG.get(program, ())):
                return True
        elif word[:1] == "-" and not set(letters).isdisjoint(word):
            return True
    if program == "tar":
        return any(_TAR_GROUP.fullmatch(word) for word in operands if word is operands[0] or word[:1] == "-")
    return program in _COMPILERS and any(map(_COMPILER_OPTION.match, operands))
