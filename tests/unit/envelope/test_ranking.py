"""Ranking: definitions, tests, zones."""

from __future__ import annotations

import pytest

from toolwire.envelope.ranking import (
    Definitions,
    defined,
    hot_zone,
    is_test_file,
    is_test_folder,
    remaining,
    zone_of,
)

DEFINITIONS = [
    ("py", "def fetch(a, b):", "fetch"),
    ("py", "    async def fetch(self) -> int:", "fetch"),
    ("py", "class Fetcher(Base):", "Fetcher"),
    ("py", "Row = NamedTuple('Row', [])", "Row"),
    ("py", "fetch = lambda x: x", "fetch"),
    ("js", "export default async function fetchAll(a) {", "fetchAll"),
    ("js", "function* walk() {", "walk"),
    ("js", "const fetch = (a, b) => {", "fetch"),
    ("js", "exports.fetch = function (a) {", "fetch"),
    ("js", "  fetch(a, b) {", "fetch"),
    ("ts", "  async fetch(a: string): Promise<void> {", "fetch"),
    ("ts", "export interface Options<T> {", "Options"),
    ("ts", "type Handler = (a: string) => void", "Handler"),
    ("go", "func (s *Server) Start(ctx context.CommandContext) error {", "Start"),
    ("go", "func New() *Server {", "New"),
    ("go", "type Server struct {", "Server"),
    ("go", "type Celsius float64", "Celsius"),
    ("rs", "pub(crate) async fn fetch<T>(a: T) -> T {", "fetch"),
    ("rs", "impl<T> Display for Wrapper<T> {", "Display"),
    ("rs", "macro_rules! fetch {", "fetch"),
    ("rs", 'pub unsafe extern "C" fn fetch(a: u8) {', "fetch"),
    ("java", "public static void main(String[] args) {", "main"),
    ("java", "public abstract class Shape implements Area {", "Shape"),
    ("kt", "override suspend fun fetch(id: Int): Row {", "fetch"),
    ("kt", "data class Row(val id: Int)", "Row"),
    ("kt", "fun String.shout() = uppercase()", "shout"),
    ("cs", "internal sealed record Row(int Id);", "Row"),
    ("swift", "fileprivate func fetch(_ id: Int) {", "fetch"),
    ("c", "static int fetch(struct row *r, int n)", "fetch"),
    ("c", "char *fetch(void) {", "fetch"),
    ("c", "#define FETCH(x) (x)", "FETCH"),
    ("c", "struct row {", "row"),
    ("cpp", "std::vector<int> Store::fetch(int n) const {", "fetch"),
    ("cpp", "enum class Color : int {", "Color"),
    ("rb", "  def self.fetch(id)", "fetch"),
    ("rb", "module Fetching", "Fetching"),
    ("php", "  public function fetch($id) {", "fetch"),
    ("pl", "sub fetch {", "fetch"),
    ("lua", "local function fetch(id)", "fetch"),
    ("sh", "fetch() {", "fetch"),
    ("sh", "function fetch {", "fetch"),
    ("ex", "  defp fetch(id) do", "fetch"),
    ("ex", "defmodule Store.Rows do", "Rows"),
    ("scala", "  def fetch(id: Int): Row =", "fetch"),
    ("scala", "object Empty extends Store", "Empty"),
    ("clj", "(defn fetch [id]", "fetch"),
    ("el", "(define-minor-mode fetch-mode", "fetch-mode"),
    ("r", "fetch <- function(id) {", "fetch"),
    ("sql", "CREATE TABLE IF NOT EXISTS rows (", "rows"),
    ("sql", "create or replace function fetch(int)", "fetch"),
    ("proto", "message Row {", "Row"),
    ("zig", "pub fn fetch(id: u8) void {", "fetch"),
]
USES = [
    ("py", "    return fetch(1)"),
    ("py", "from store import fetch"),
    ("py", "# the class of all things"),
    ("py", "type of the value that is fetched"),
    ("py", "class of service that they get"),
    ("py", "rows = fetch(1)"),
    ("py", "mock_fetch = ..."),
    ("py", "undefined(1)"),
    ("js", "  if (fetch(a)) {"),
    ("js", "  return fetch(function () {"),
    ("js", 'describe("fetch", function () {'),
    ("js", "  fetch(a, b);"),
    ("js", "  while (x) {"),
    ("c", "    return fetch(a, b)"),
    ("c", "    x = fetch(a);"),
    ("c", "    row->fetch(a, b) {"),
    ("c", "    else if (x) {"),
    ("c", "int fetch(int a);"),
    ("java", "    new Fetcher(a) {"),
    ("go", "\tdefer fetch(a)"),
    ("md", "def fetch():"),
    ("json", '"class Fetch {"'),
    ("txt", "class Fetch {"),
    ("", ""),
]


@pytest.mark.parametrize(("ending", "line", "name"), DEFINITIONS)
def test_definitions_are_recognized(ending: str, line: str, name: str) -> None:
    assert defined(line.encode(), ending.encode()).decode() == name


@pytest.mark.parametrize(("ending", "line"), USES)
def test_uses_are_not_definitions(ending: str, line: str) -> None:
    assert not Definitions("fetch|class|type|x|Fetch").among(line.encode(), ending.encode())


@pytest.mark.parametrize(
    ("pattern", "line", "found"),
    [
        ("database_connection", "def database_connection():", True),
        ("connection", "def database_connection():", True),
        ("Database_Connection", "def database_connection():", False),
        ("cut", "class Cut:", True),
        ("def handle_grep", "def handle_grep(a):", True),
        ("database_connection", "def other(database_connection):", False),
        (r"database_\w+", "def other(database_connection):", True),  # a pattern: whatever defines
    ],
)
def test_a_definition_must_be_of_the_name_itself(pattern: str, line: str, found: bool) -> None:
    assert Definitions(pattern).among(line.encode(), b"py") is found


@pytest.mark.parametrize(
    "unit",
    ["(", "<", " ", "\t", "a ", "export ", "a.", "a::", "pub(", "*", "=", "type ", "create ", "é", "\\", '"', ":"],
)
@pytest.mark.parametrize("ending", ["py", "c", "js"])
def test_long_lines_take_linear_time(unit: str, ending: str) -> None:
    for before in ("", "def ", "fn <", "func ("):
        defined((before + unit * 400)[:600].encode(), ending.encode())


@pytest.mark.parametrize(
    ("path", "test"),
    [
        ("tests/test_a.py", True), ("src/a.py", False), ("test_a.py", True), ("a_test.go", True), ("a.test.ts", True),
        ("a.spec.js", True), ("src/FooTest.java", True), ("src/FooTests.cs", True), ("src/__tests__/a.js", True),
        ("conftest.py", True), ("spec/models/user_spec.rb", True), ("src/latest.py", False), ("src/contest.py", False),
        ("src/attestation/a.py", False), ("testing/a.py", True), ("src/protest_test/a.py", False),
        ("inspect.py", False), ("src/testament.py", False), ("a/b/Spec.hs", False), ("src/UserSpec.scala", True),
        ("pytest.ini", False),
    ],
)  # fmt: skip
def test_paths_of_tests_are_recognized(path: str, test: bool) -> None:
    folder, _, name = path.rpartition("/")
    assert (is_test_folder(folder) or is_test_file(name.encode())) is test


@pytest.mark.mission("G16")
@pytest.mark.parametrize(
    ("counts", "total", "zone"),
    [
        ({"tools/rag": 70, "tests": 20, "scripts": 10}, 100, "tools/rag/ (70%)"),
        ({"tools": 30, "tests": 30, "scripts": 30}, 90, None),
        ({"tools": 3}, 3, None),
        ({"tools": 5}, 5, "tools/ (100%)"),
        ({"a": 1, "b": 1}, 2, None),
        ({"a": 5, "b": 5}, 10, "b/ (50%)"),
        ({"": 9, "a": 1}, 10, None),
        ({}, 0, None),
        ({"x" * 200: 9}, 9, "x" * 79 + "…/ (100%)"),
        ({"a\nb": 9}, 9, "a\\nb/ (100%)"),
    ],
)
def test_a_hot_zone_has_half_of_the_hits(counts: dict[str, int], total: int, zone: str | None) -> None:
    assert hot_zone(counts, total) == zone


@pytest.mark.parametrize(
    ("path", "zone"),
    [("a/b/c/d.py", "a/b"), ("a/b.py", "a"), ("b.py", ""), ("tools/rag/database.py", "tools/rag"), ("", "")],
)
def test_zones_are_directories(path: str, zone: str) -> None:
    assert zone_of(path) == zone


@pytest.mark.parametrize(
    ("zones", "hot", "said"),
    [
        ({"tools": 42}, "tools", "42 more in tools/"),
        ({"tools": 42, "a": 3}, "tools", "42 more in tools/, 3 elsewhere"),
        ({"a": 3, "b": 2}, "", "5 more"),
        ({"a": 3, "tools": 0}, "tools", "3 more"),
    ],
)
def test_the_breadcrumb_counts_remaining_hits(zones: dict[str, int], hot: str, said: str) -> None:
    assert remaining(zones, hot) == said
