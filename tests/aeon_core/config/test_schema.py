from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aeon_core.config.keys import KEYS, MAPPINGS
from aeon_core.config.loading import PLAINLY_RIGHT, LoadedConfig, load_config, load_values, read_config_file
from aeon_core.config.schema import RunConfig, runs_directory
from aeon_core.errors import UsageError
from aeon_core.paths import find_project_root
from aeon_core.policy import PolicyRules

SCALARS = (
    st.none() | st.booleans() | st.integers(-2, 2) | st.integers() | st.floats() | st.characters() | st.just("\udcff")
)
VALUES = SCALARS | st.lists(SCALARS | st.text(max_size=3), max_size=3)


class Layers:
    """A project and a home in a scratch folder."""

    def __init__(self, folder: Path) -> None:
        self.home = folder / "xdg"
        self.project = folder / "project"
        self.below = self.project / "src" / "deep"
        self.below.mkdir(parents=True)
        (self.project / ".aeon").mkdir()

    def user(self, text: str) -> Path:
        return self.write(self.home / "aeon" / "config.yml", text)

    def own(self, text: str) -> Path:
        return self.write(self.project / ".aeon" / "config.yml", text)

    def extra(self, text: str) -> Path:
        return self.write(self.project / "extra.yml", text)

    def write(self, path: Path, text: str) -> Path:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        return path

    def load(
        self, options: dict[str, Any] | None = None, environ: dict[str, str] | None = None, **named: Any
    ) -> LoadedConfig:
        environ = {"XDG_CONFIG_HOME": str(self.home), **(environ or {})}
        named = {"trust": "apply", **named}
        return load_config(options, environ=environ, start=self.below, **named)


@pytest.fixture
def layers(tmp_path: Path) -> Layers:
    return Layers(tmp_path)


@pytest.mark.parametrize("environ", [{}, {"HOME": ""}, {"HOME": "home"}, {"XDG_CONFIG_HOME": "xdg"}], ids=str)
def test_a_folder_cannot_pass_off_its_own_file_as_the_users(
    layers: Layers, monkeypatch: pytest.MonkeyPatch, environ: dict[str, str]
) -> None:
    monkeypatch.chdir(layers.below)
    monkeypatch.setenv("HOME", str(layers.home))
    for name in ("~/.config", "home/.config", "xdg"):
        layers.write(layers.below / name / "aeon" / "config.yml", "base_url: http://127.0.0.1:9/v1\n")
    loaded = load_config(environ=environ, start=layers.below)
    assert (loaded.config.base_url, loaded.files) == (None, [])


@pytest.mark.parametrize("environ", [{}, {"XDG_CONFIG_HOME": "xdg"}], ids=str)
def test_without_a_usable_folder_for_configuration_the_users_file_is_in_the_home_folder(
    layers: Layers, monkeypatch: pytest.MonkeyPatch, environ: dict[str, str]
) -> None:
    monkeypatch.setenv("HOME", str(layers.home))
    file = layers.write(layers.home / ".config" / "aeon" / "config.yml", "ttl: 7\n")
    loaded = load_config(environ=environ, start=layers.below)
    assert (loaded.config.ttl, loaded.files) == (7, [file])


def test_without_any_layer_the_defaults_apply(layers: Layers) -> None:
    loaded = layers.load()
    assert loaded.config == RunConfig(project_root=layers.project)
    assert (loaded.sources, loaded.files) == ({}, [])


def test_values_exclude_defaults(layers: Layers) -> None:
    layers.own("ttl: 9\nruns_dir: kept\n")
    loaded = load_values({"model": "a:b"}, environ={"XDG_CONFIG_HOME": str(layers.home)}, start=layers.below)
    assert loaded.values == {
        "ttl": 9,
        "runs_dir": layers.project / ".aeon" / "kept",
        "model": "a:b",
        "project_root": layers.project,
    }
    assert layers.load({"model": "a:b"}).config == RunConfig(**loaded.values)


def test_the_keys_are_the_fields_in_their_order() -> None:
    assert tuple(RunConfig.model_fields) == KEYS


@given(st.sampled_from(sorted(PLAINLY_RIGHT)), VALUES)
def test_plainly_valid_values_pass_the_full_check_unchanged(key: str, value: object) -> None:
    if PLAINLY_RIGHT[key](value):
        taken = getattr(RunConfig.model_validate({key: value}), key)
        assert (type(taken), taken) == (type(value), value)


@pytest.mark.parametrize(
    ("key", "right", "wrong"),
    [
        ("model", "a:b", 5),
        ("base_url", "http://x", None),
        ("ttl", 0, -1),
        ("ttl", 50, True),
        ("single_pass", False, 0),
        ("tools", ["a:b"], ["a:b", 5]),
        ("max_tokens", 1, 0),
    ],
)
def test_common_values_are_plainly_valid_and_doubtful_ones_are_not(key: str, right: object, wrong: object) -> None:
    assert PLAINLY_RIGHT[key](right)
    assert not PLAINLY_RIGHT[key](wrong)


def test_each_layer_wins_over_the_ones_before_it(layers: Layers) -> None:
    assert layers.load().config.ttl == 50
    user = layers.user("ttl: 1\nmax_tokens: 100\n")
    assert layers.load().config.ttl == 1
    own = layers.own("ttl: 2\n")
    assert layers.load().config.ttl == 2
    extra = layers.extra("ttl: 3\n")
    assert layers.load(config_file=extra).config.ttl == 3
    assert layers.load(environ={"AEON_TTL": "4"}, config_file=extra).config.ttl == 4
    loaded = layers.load({"ttl": "5"}, {"AEON_TTL": "4"}, config_file=extra)
    assert loaded.config.ttl == 5
    assert loaded.config.max_tokens == 100
    assert loaded.files == [user, own, extra]
    assert loaded.sources == {"ttl": "the option --ttl", "max_tokens": f"the file {str(user)!r}"}


def test_a_wrong_rule_of_the_command_line_is_named_by_its_option(layers: Layers) -> None:
    with pytest.raises(UsageError, match=r"^--allow must be lists of rules"):
        layers.load({"policy": {"allow": ["Run("]}})


def test_every_key_can_be_set_in_a_file_the_environment_and_by_option(layers: Layers) -> None:
    texts = {
        "model": "simulated:default",
        "base_url": "http://127.0.0.1:1",
        "ttl": "7",
        "single_pass": "true",
        "criteria": str(layers.project / "c.yml"),
        "requirements": str(layers.project / "r.txt"),
        "judge_model": "simulated:default",
        "judge_votes": "3",
        "tools": "a:b",
        "project_root": str(layers.project),
        "approve": "none",
        "wait": "2.5",
        "on_unknown": "retry",
        "durability": "off",
        "runs_dir": str(layers.project / "r"),
        "max_tokens": "9",
        "timeout": "1.5",
        "prompts_dir": str(layers.project / "p"),
        "budget": "1.5",
        "budget_warning": "1",
        "context_window": "8000",
        "otel": "true",
        "otel_content": "false",
    }
    assert set(texts) == set(KEYS) - MAPPINGS, "give each new setting a text above"
    expected = RunConfig(
        model="simulated:default",
        base_url="http://127.0.0.1:1",
        ttl=7,
        single_pass=True,
        criteria=layers.project / "c.yml",
        requirements=layers.project / "r.txt",
        judge_model="simulated:default",
        judge_votes=3,
        tools=["a:b"],
        project_root=layers.project,
        approve=["none"],
        wait=2.5,
        on_unknown="retry",
        durability="off",
        runs_dir=layers.project / "r",
        max_tokens=9,
        timeout=1.5,
        prompts_dir=layers.project / "p",
        budget=1.5,
        budget_warning=1.0,
        context_window=8000,
        otel=True,
        otel_content=False,
    )
    assert layers.load(dict(texts)).config == expected
    assert layers.load(environ={f"AEON_{key.upper()}": text for key, text in texts.items()}).config == expected
    file = layers.extra(
        "\n".join(f"{key}: {text}" for key, text in texts.items() if key != "tools") + "\ntools: [a:b]\n"
    )
    assert layers.load(config_file=file).config == expected


def test_file_only_settings_are_read_and_merged_across_layers(layers: Layers) -> None:
    layers.user("policy: {deny: [Bash]}\nprices: {a: {input: 1, output: 2}}\nmcp_servers: {one: {command: x}}")
    layers.own("policy: {allow: ['Read']}\nprices: {b: {input: 3, output: 4}}\nshell: {network: true}")
    extra = layers.extra(
        "mcp_servers: {two: {url: 'http://127.0.0.1:1/mcp'}}\nmodel: ['a:b', 'c:d']\nbedrock: {region: r}"
    )
    config = layers.load({"policy": {"allow": ["Write"]}}, config_file=extra).config
    assert config.policy == PolicyRules(allow=("Read", "Write"), deny=("Bash",))
    assert {name: (price.input, price.output) for name, price in config.prices.items()} == {"a": (1, 2), "b": (3, 4)}
    assert list(config.mcp_servers) == ["one", "two"]
    assert (config.shell.network, config.bedrock.region, config.models) == (True, "r", ["a:b", "c:d"])


def test_a_mapping_cannot_be_given_in_the_environment(layers: Layers) -> None:
    settings = ("policy", "policy.allow", "shell.timeout")
    named = {f"AEON_{setting.upper().replace('.', '_')}": setting for setting in settings}
    slips = {"AEON_SHELL_TIMOUT": "shell.timeout", "AEON_MCP_SERVERS_GIT": "mcp_servers"}
    for name, setting in {**named, **slips}.items():
        with pytest.raises(UsageError, match=f"'{name}' is not supported; set '{setting}' in a config file"):
            layers.load(environ={name: "x"})
    assert layers.load(environ={"AEON_SHELL_HISTORY": "x", "AEON_KEY": "x", "AEON_POLICY": ""}).sources == {}


def test_several_tools_come_from_a_repeated_option_or_commas_in_the_environment(layers: Layers) -> None:
    assert layers.load({"tools": ["a:b", "c:d"]}).config.tools == ["a:b", "c:d"]
    assert layers.load(environ={"AEON_TOOLS": "a:b, c:d,"}).config.tools == ["a:b", "c:d"]


def test_relative_folders_are_relative_to_their_file_or_else_the_working_directory(
    layers: Layers, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(layers.below)
    layers.own("runs_dir: ../kept\n")
    assert layers.load().config.runs_dir == layers.project / ".aeon" / ".." / "kept"
    assert layers.load({"runs_dir": "here"}).config.runs_dir == layers.below / "here"
    monkeypatch.setenv("HOME", str(layers.home))
    assert layers.load({"runs_dir": "~/r"}).config.runs_dir == layers.home / "r"


def test_empty_variables_and_null_values_are_absent(layers: Layers) -> None:
    layers.own("ttl:\nmodel: null\n")
    assert layers.load(environ={"AEON_MODEL": " "}).config == RunConfig(project_root=layers.project)
    layers.own("# nothing\n")
    assert layers.load().config.ttl == 50


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("tlt: 5", "has an unknown key, 'tlt'; did you mean 'ttl'?"),
        ("modle: x", "has an unknown key, 'modle'; did you mean 'model'?"),
        ("qqqq: x", "has an unknown key, 'qqqq'; the known ones are model, base_url"),
        ("5: x", "line 1: expected a text key, got '5'; quote it"),
        ("ttl: many", "'ttl' in the config file .* must be a whole number of cycles, 0 or more; got 'many'"),
        ("ttl: -1", "must be a whole number of cycles, 0 or more; got -1"),
        ("ttl: 2.5", "must be a whole number"),
        ("ttl: true", "must be a whole number"),
        ("judge_votes: true", "must be 1 or 3; got True"),
        ("tools: a:b", "must be a list of files, shell, mcp or module:attribute"),
        ('runs_dir: ""', "'runs_dir' in the config file .* must be the path of a folder; got ''"),
        ("model: 5", "must be PROVIDER:NAME, or a list of these; got 5"),
        ("model: []", "must be PROVIDER:NAME"),
        ("model: [5]", "must be PROVIDER:NAME"),
        ("budget: -1", "must be an amount in US dollars, 0 or more; got -1"),
        ("budget: yes", "must be an amount in US dollars, 0 or more; got 'yes'"),
        ("timeout: true", "must be a number of seconds above 0; got True"),
        ("policy: {alow: [Bash]}", "must be lists of rules"),
        ("policy: {allow: ['Bash(x']}", "'allow'"),
        ("shell: {timeout: 0}", "'timeout' is 0"),
        ("prices: {m: {input: 1}}", "'m.output' is missing"),
        ("prices: {4: {input: 1, output: 1}}", "line 1: expected a text key, got '4'"),
        ("mcp_servers: {a: {comand: x}}", "unknown key, 'comand'; did you mean 'command'?"),
        ("bedrock: {zone: x}", "'zone' is unknown"),
        ("single_pass: maybe", "must be true or false; got 'maybe'"),
        ("durability: often", "must be one of full, normal, off; got 'often'"),
        ("timeout: .nan", "must be a number of seconds above 0"),
        ("timeout: .inf", "must be a number of seconds above 0"),
        ("- ttl", "is a list; expected `key: value` lines"),
        ("just text", "is text; expected"),
        ("ttl: 1\n  model: x", "line 2 is not valid YAML"),
        ("ttl: [", "line 1|2 is not valid YAML"),
        ("a: !!python/object:os.system {}", "the tag '!!python/object:os.system' is not supported"),
        ("x: " + "[" * 5_000, "nested deeper than 100 levels"),
        ("x: '" + "y" * 1_000_001, "is larger than"),
        ("a: \x00", "is not valid YAML"),
        ("ttl: &a 1", "line 1: anchors and aliases are not supported; write the value out"),
        ("ttl: 1\nttl: 2", "line 2: the key 'ttl' occurs twice; keep one of them"),
        ("ttl: " + "1" * 5_000, "line 1: a number of 5,000 characters is too long"),
    ],
)
def test_a_wrong_file_is_refused_in_one_line_that_names_it(layers: Layers, text: str, message: str) -> None:
    file = layers.extra(text)
    with pytest.raises(UsageError) as caught:
        layers.load(config_file=file)
    assert re.search(message, caught.value.message)
    assert str(file) in caught.value.message
    assert "\n" not in caught.value.message
    assert len(caught.value.message) < 500


def test_invalid_utf8_and_folders_are_refused(layers: Layers) -> None:
    file = layers.extra("")
    file.write_bytes(b"ttl: \xff\xfe\n")
    for path in (file, layers.project, layers.project / "none.yml"):
        with pytest.raises(UsageError, match="the config file") as caught:
            read_config_file(path)
        assert "\n" not in caught.value.message


def test_an_unquoted_off_is_accepted_as_durability(layers: Layers) -> None:
    layers.own("durability: off\n")
    assert layers.load().config.durability == "off"


@pytest.mark.parametrize(
    ("environ", "message"),
    [
        ({"AEON_TTL": "x"}, "the environment variable AEON_TTL must be a whole number of cycles, 0 or more; got 'x'"),
        ({"AEON_MODLE": "x"}, "the environment variable 'AEON_MODLE' is unknown; did you mean 'AEON_MODEL'?"),
    ],
)
def test_a_wrong_variable_is_refused_by_its_name(layers: Layers, environ: dict[str, str], message: str) -> None:
    with pytest.raises(UsageError) as caught:
        layers.load(environ=environ)
    assert caught.value.message == message


def test_variables_of_other_programs_are_left_alone(layers: Layers) -> None:
    assert layers.load(environ={"AEON_LICENSE_SERVER": "x"}).config.ttl == 50


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"ttl": "-1"}, "--ttl must be a whole number of cycles, 0 or more; got '-1'"),
        ({"ttl": "1_000"}, "--ttl must be"),
        ({"ttl": "9" * 5_000}, "--ttl must be"),
        ({"model": ""}, "--model is empty, expected PROVIDER:NAME"),
        ({"durability": "no"}, "--durability must be one of full, normal, off; got 'no'"),
        ({"project_root": "/no/such/folder"}, "the project root '/no/such/folder' is not a folder"),
    ],
)
def test_a_wrong_option_is_refused_by_its_name(layers: Layers, options: dict[str, Any], message: str) -> None:
    with pytest.raises(UsageError) as caught:
        layers.load(options)
    assert caught.value.message.startswith(message)


def test_a_given_project_root_decides_which_project_file_is_read(layers: Layers, tmp_path: Path) -> None:
    other = tmp_path / "other"
    (other / ".aeon").mkdir(parents=True)
    (other / ".aeon" / "config.yml").write_text("ttl: 9\n")
    layers.own("ttl: 2\n")
    assert layers.load({"project_root": str(other)}).config.ttl == 9
    assert layers.load(environ={"AEON_PROJECT_ROOT": str(other)}).config.ttl == 9


def test_the_project_root_is_the_nearest_folder_with_a_mark(tmp_path: Path) -> None:
    (tmp_path / "outer" / ".aeon").mkdir(parents=True)
    inner = tmp_path / "outer" / "inner"
    (inner / "below").mkdir(parents=True)
    assert find_project_root(inner / "below") == tmp_path / "outer"
    (inner / ".git").write_text("gitdir: elsewhere\n")
    assert find_project_root(inner / "below") == inner
    alone = tmp_path / "alone"
    alone.mkdir()
    assert find_project_root(alone) == alone


def test_runs_dir_precedence_is_option_environment_project_platform(
    layers: Layers, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    bare = tmp_path / "bare"
    bare.mkdir()
    assert runs_directory(RunConfig(project_root=bare)) == tmp_path / "xdg-state" / "aeon" / "runs"
    assert runs_directory(RunConfig(project_root=layers.project)) == layers.project / ".aeon" / "runs"
    monkeypatch.setenv("AEON_RUNS_DIR", str(tmp_path / "env"))
    assert runs_directory(RunConfig(project_root=layers.project)) == tmp_path / "env"
    assert runs_directory(RunConfig(runs_dir=tmp_path / "option")) == tmp_path / "option"


def test_without_a_config_the_working_directory_decides(layers: Layers, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(layers.below)
    assert runs_directory() == layers.project / ".aeon" / "runs"


@pytest.mark.parametrize("text", ["ttl: 1\nttl: 2\n", 'ttl: 1\n"ttl": 2\n'])
def test_a_key_that_occurs_twice_is_refused(layers: Layers, text: str) -> None:
    path = layers.own(text)
    with pytest.raises(UsageError) as caught:
        layers.load()
    assert (
        caught.value.message == f"the config file {str(path)!r}, line 2: the key 'ttl' occurs twice; keep one of them"
    )


@pytest.mark.parametrize("text", ["approve: none", "approve: [none]"])
def test_approve_none_asks_about_nothing(layers: Layers, text: str) -> None:
    layers.own(text)
    assert layers.load().config.approve == ["none"]
    assert RunConfig(approve=["none"]) == RunConfig()
    for wrong, got in {"plans": "'plans'; did you mean 'plan'?", "none,pass": "'none, pass'"}.items():
        with pytest.raises(UsageError) as caught:
            layers.load(environ={"AEON_APPROVE": wrong})
        expected = "the environment variable AEON_APPROVE must be one or more of plan, pass and tool, or none; got "
        assert caught.value.message == expected + got
    layers.own("approve: [answer]")
    with pytest.raises(UsageError, match=r"'approve' in the config file .* must be one or more of plan, pass and tool"):
        layers.load()
    layers.own("approve: plan,pass,tool")
    assert layers.load().config.approve == ["plan", "pass", "tool"]


@pytest.mark.parametrize(
    "url", ["nowhere", "ftp://host/v1", "http://", "http://host:99999999", "http://a b", "http://h\n/"]
)
def test_an_invalid_base_url_is_refused_in_one_line(layers: Layers, url: str) -> None:
    with pytest.raises(UsageError, match="--base-url must be the address of a server, http://HOST:PORT/v1 or https://"):
        layers.load({"base_url": url})
    with pytest.raises(UsageError, match="'base_url' of RunConfig must be the address of a server"):
        RunConfig(base_url=url)
    assert RunConfig(base_url="https://host/v1?x=1").base_url == "https://host/v1?x=1"


def test_a_password_in_a_wrong_base_url_is_not_shown(layers: Layers) -> None:
    with pytest.raises(UsageError) as caught:
        layers.load({"base_url": "ftp://user:hunter2@host"})
    assert "hunter2" not in caught.value.message


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"ttl": -1}, "'ttl' of RunConfig must be a whole number of cycles, 0 or more; got -1"),
        ({"tll": 1}, "RunConfig has no field 'tll'; did you mean 'ttl'?"),
        (
            {"approve": ["plans"]},
            (
                "'approve' of RunConfig must be one or more of plan, pass and tool, or none; "
                "got 'plans'; did you mean 'plan'?"
            ),
        ),
        (
            {"tools": ["a:b", 5]},
            ("'tools' of RunConfig must be a list of files, shell, mcp or module:attribute; got ['a:b', 5]"),
        ),
    ],
)
def test_wrong_options_from_python_are_a_usage_error_in_one_line(values: dict[str, Any], message: str) -> None:
    with pytest.raises(UsageError) as caught:
        RunConfig(**values)
    assert caught.value.message == message
