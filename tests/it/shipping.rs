//! What packages of the program rely on: its version, completion scripts, man pages and container.

use std::fs;
use std::path::Path;
use std::process::Command;

use acem3::cli::args::Cli;
use clap::CommandFactory as _;

use crate::folder::Folder;

fn git(arguments: &[&str]) -> Option<String> {
    let mut command = Command::new("git");
    command
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .args(arguments);
    let output = command
        .output()
        .ok()
        .filter(|output| output.status.success())?;
    Some(String::from_utf8(output.stdout).unwrap().trim().to_owned())
}

#[test]
fn version_names_commit_and_features() {
    let folder = Folder::of(1);
    let printed = folder.run(&["--version"]).out;
    let start = concat!("acem3 ", env!("CARGO_PKG_VERSION"), " (");
    let rest = printed
        .strip_prefix(start)
        .unwrap_or_else(|| panic!("{printed}"));
    let (commit, features) = rest.trim_end().split_once(", features: ").unwrap();
    let cuda = if cfg!(feature = "cuda") { ", cuda" } else { "" };
    assert_eq!(features, format!("cpu{cuda})"));
    let top = git(&["rev-parse", "--show-toplevel"]);
    let is_repository =
        top.is_some_and(|top| Path::new(&top) == Path::new(env!("CARGO_MANIFEST_DIR")));
    if is_repository && std::env::var_os("ACEM3_BUILD_COMMIT").is_none() {
        let head = git(&["rev-parse", "--short=7", "HEAD"]).unwrap();
        assert_eq!(commit.trim_end_matches("-dirty"), head);
    }
    assert_eq!(
        folder.run(&["judge", "--version"]).out,
        printed.replace("acem3 ", "acem3-judge ")
    );
}

#[test]
fn commit_enters_no_file_of_a_run() {
    let folder = Folder::of(1);
    assert_eq!(folder.judge("out", &[]).code, 0);
    assert_eq!(folder.manifest("out")["version"], env!("CARGO_PKG_VERSION"));
    let phantoms = folder.run(&["data", "phantoms", "--count", "1", "--out", "toy"]);
    assert_eq!(phantoms.code, 0, "{}", phantoms.err);
    let mark = folder.read("toy/phantoms.json");
    assert!(
        mark.contains(concat!("\"", env!("CARGO_PKG_VERSION"), "\"")),
        "{mark}"
    );
}

#[test]
fn completion_scripts_list_the_commands() {
    let folder = Folder::empty();
    for shell in ["bash", "elvish", "fish", "powershell", "zsh"] {
        let script = folder.run(&["completions", shell]);
        assert_eq!((script.code, script.err.as_str()), (0, ""));
        for command in Cli::command().get_subcommands() {
            let name = command.get_name();
            assert!(script.out.contains(name), "{shell}: {name} is missing");
        }
        assert!(
            script.out.contains("--panel"),
            "{shell}: --panel is missing"
        );
    }
    assert_eq!(folder.run(&["completions", "cmd"]).code, 2);
}

#[test]
fn bash_completes_commands_and_flags() {
    let folder = Folder::empty();
    folder.write("acem3.bash", &folder.run(&["completions", "bash"]).out);
    let complete = |words: &str, at: usize| {
        let script = format!(
            "source ./acem3.bash; COMP_WORDS=({words}); COMP_CWORD={at}; \
             _acem3 acem3 \"${{COMP_WORDS[{at}]}}\" \"${{COMP_WORDS[{at}-1]}}\"; echo \"${{COMPREPLY[*]}}\""
        );
        let mut bash = Command::new("bash");
        bash.current_dir(folder.path("")).args(["-c", &script]);
        let output = bash.output().ok()?;
        Some(String::from_utf8(output.stdout).unwrap().trim().to_owned())
    };
    let Some(found) = complete("acem3 ju", 1) else {
        eprintln!("skipped: bash cannot be run");
        return;
    };
    assert_eq!(found, "judge");
    assert_eq!(complete("acem3 judge --basel", 2).unwrap(), "--baseline");
}

/// Counts a command and the visible commands below it.
fn count(command: &clap::Command) -> usize {
    let visible = command.get_subcommands().filter(|c| !c.is_hide_set());
    1 + visible.map(count).sum::<usize>()
}

#[test]
fn every_command_has_a_man_page() {
    let folder = Folder::empty();
    let written = folder.run(&["man", "--out", "pages"]);
    assert_eq!(
        (written.code, written.out.as_str()),
        (0, ""),
        "{}",
        written.err
    );
    let pages = fs::read_dir(folder.path("pages")).unwrap().count();
    assert_eq!(pages, count(&Cli::command()));
    let main = folder.read("pages/acem3.1");
    assert!(main.contains("acem3\\-judge(1)"), "{main}");
    let page = folder.read("pages/acem3-judge.1");
    let judge = Cli::command();
    let judge = judge.find_subcommand("judge").unwrap();
    let flags: Vec<&str> = judge.get_arguments().filter_map(|a| a.get_long()).collect();
    assert!(flags.contains(&"max-unscored"));
    for flag in flags {
        let flag = format!("\\-\\-{}", flag.replace('-', "\\-"));
        assert!(page.contains(&flag), "{flag} is missing");
    }
    assert!(
        folder
            .read("pages/acem3-data-check.1")
            .contains("min\\-responses")
    );
}
