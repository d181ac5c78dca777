"""Which files of a command are code, for each program that reads files of its directory, and which are data."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from toolwire.runtime.launched_files import code_digests, depends_on_directory, program_file


def code(folder: Path, *argv: str, **env: str) -> set[str]:
    """Return the files below a folder that a command runs."""
    return {os.path.relpath(path, folder) for path in code_digests("", argv, str(folder), env) if path}


@pytest.mark.parametrize(
    ("programs", "files"),
    [
        ("make gmake bmake", "GNUmakefile makefile Makefile BSDmakefile"),
        ("npm npx pnpm yarn bun", "package.json"),
        ("just", "justfile Justfile .justfile"),
        ("rake", "Rakefile rakefile Rakefile.rb rakefile.rb"),
        ("task go-task", "Taskfile.yml Taskfile.yaml"),
        ("invoke inv fab", "tasks.py fabfile.py"),
        ("tox nox", "tox.ini pyproject.toml setup.cfg noxfile.py"),
        ("pytest", "conftest.py pyproject.toml pytest.ini tox.ini setup.cfg"),
        ("pip pip3 uv poetry pdm hatch", "pyproject.toml setup.py setup.cfg"),
        ("cargo", "build.rs Cargo.toml .cargo/config.toml"),
        ("gradle gradlew", "build.gradle build.gradle.kts settings.gradle init.gradle"),
        ("mvn mvnw", "pom.xml .mvn/jvm.config"),
        ("ant", "build.xml"),
        ("cmake ctest", "CMakeLists.txt CTestTestfile.cmake"),
        ("ninja samu", "build.ninja"),
        ("meson", "meson.build"),
        ("composer", "composer.json"),
        ("mix", "mix.exs"),
        ("docker docker-compose podman", "Dockerfile Containerfile compose.yaml docker-compose.yml"),
        ("terraform tofu", "main.tf main.tf.json .terraformrc"),
        ("vagrant", "Vagrantfile"),
        ("pre-commit", ".pre-commit-config.yaml .git/config .git/hooks/pre-push"),
        ("ansible ansible-playbook", "ansible.cfg"),
        ("direnv", ".envrc"),
        ("git", ".git/config .git/hooks/pre-push"),
    ],
)
def test_build_files_are_code_of_the_programs_that_read_them(programs: str, files: str, tmp_path: Path) -> None:
    for name in (*files.split(), ".git/hooks/pre-push.sample", "notes"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("x")
    for program in programs.split():
        assert code(tmp_path, program) == code(tmp_path, "sudo", f"/no/such/{program}") == {*files.split()}, program
    assert code(tmp_path, "cat") == set()


@pytest.mark.parametrize(
    "program",
    [
        *("make", "gmake", "bmake", "ninja", "just", "task", "go-task", "ant", "awk", "gawk", "mawk", "sed", "vim"),
        *("ansible", "ansible-playbook", "docker", "docker-compose", "podman", "kubectl", "psql", "mysql", "expect"),
        *("tclsh", "gnuplot", "octave", "m4", "bc", "ed", "crontab", "at", "batch", "xargs", "parallel"),
    ],
)
def test_any_file_is_code_of_a_program_that_runs_what_it_is_given(program: str, tmp_path: Path) -> None:
    (tmp_path / "any").write_text("x")
    for argument in ("any", "-fany", "--file=any"):
        assert code(tmp_path, program, argument) == {"any"}
    assert code(tmp_path, "cat", "any") == set()


def test_the_first_argument_may_be_text_for_a_shell(tmp_path: Path) -> None:
    for name in ("run.sh", "first.sh", "other.sh"):
        (tmp_path / name).write_text("echo")
    assert code(tmp_path, "watch", "sh first.sh; sh -c 'cd . && sh run.sh'") == {"first.sh", "run.sh"}


def test_files_of_directories_that_a_command_changes_to_are_code(tmp_path: Path) -> None:
    for name in ("s", "sub"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "Makefile").write_text("x")
        for words in (["-C", name], [f"-C{name}"], [f"--directory={name}"]):
            assert code(tmp_path, "make", *words) == {f"{name}/Makefile"}
    assert code(tmp_path, "sh", "-c", "echo `make -C sub`") == {"sub/Makefile"}
    assert code(tmp_path, "sh", "-c", "echo `cd sub`make") == {"sub/Makefile"}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        *(("", False), ("-x", False), ("/etc", False), ("https://a/b", False), ("word", False)),
        *((".", True), ("..", True), ("a/b", True), ("there", True), ("module", True), ("package", True)),
    ],
)
def test_an_argument_depends_on_the_directory_if_it_may_be_a_file_there(
    text: str, expected: bool, tmp_path: Path
) -> None:
    (tmp_path / "there").symlink_to("nowhere")
    (tmp_path / "module.py").touch()
    (tmp_path / "node_modules" / "package").mkdir(parents=True)
    assert depends_on_directory(text, str(tmp_path)) is expected


def test_a_program_is_found_from_the_directory_or_on_the_path(tmp_path: Path) -> None:
    program = tmp_path / "bin" / "run"
    program.parent.mkdir()
    program.touch(0o755)
    for command, path in (("bin/run", ""), ("./bin/../bin/run", ""), ("run", "bin"), ("run", f"/none{os.pathsep}bin")):
        assert program_file(command, str(tmp_path), path) == str(program)
    assert program_file("bin/none", str(tmp_path), "") == program_file("none", str(tmp_path), "bin") == ""
