"""The files that a spec names are found from every folder."""

from gradcli.spec.load import load_specs


def test_a_file_target_is_found_from_every_folder_of_the_project(tmp_path, monkeypatch):
    for name in ("specs", "deep/er"):
        (tmp_path / name).mkdir(parents=True)
    (tmp_path / "pyproject.toml").write_text("")
    (tmp_path / "mine.py").write_text("")
    (tmp_path / "specs/a.yaml").write_text("target: mine.py:F\ngrad: mine.py:G\n")
    (tmp_path / "specs/b.yaml").write_text("target: mien.py:F\ncases: [{name: one}]\n")
    for start, shown in (
        (tmp_path, "mine.py"),
        (tmp_path / "deep/er", "../../mine.py"),
        (tmp_path / "specs", "../mine.py"),
    ):
        monkeypatch.chdir(start)
        found, missing = load_specs(tmp_path / "specs")
        assert (found.target, found.grad, found.problem) == (f"{shown}:F", f"{shown}:G", None)
    monkeypatch.chdir(tmp_path / "deep/er")
    _, missing = load_specs(tmp_path / "specs")
    assert missing.problem.exit_code == 2
    assert missing.problem.message == (
        f"{tmp_path}/specs/b.yaml:2:9: no file mien.py: looked in {tmp_path}/specs (the spec's folder), {tmp_path} "
        f"(the folder of pyproject.toml) and {tmp_path}/deep/er (the working directory) (did you mean 'mine.py'?)"
    )
