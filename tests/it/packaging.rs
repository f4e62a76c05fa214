//! Tests of the version output, completion scripts and man pages.

use std::fs;
use std::path::Path;
use std::process::Command;

use acem3::cli::args::Cli;
use clap::CommandFactory as _;

use crate::folder::Folder;

/// Runs git in the repository. Returns its trimmed output, or `None` if it failed.
fn run_git(arguments: &[&str]) -> Option<String> {
    let mut command = Command::new("git");
    command.current_dir(env!("CARGO_MANIFEST_DIR")).args(arguments);
    let output = command.output().ok().filter(|output| output.status.success())?;
    Some(String::from_utf8(output.stdout).unwrap().trim().to_owned())
}

#[test]
fn version_names_commit_and_features() {
    let folder = Folder::with_cases(1);
    let version = folder.run(&["--version"]).stdout;
    let start = concat!("acem3 ", env!("CARGO_PKG_VERSION"), " (");
    let rest = version.strip_prefix(start).unwrap_or_else(|| panic!("{version}"));
    let (commit, features) = rest.trim_end().split_once(", features: ").unwrap();
    let cuda = if cfg!(feature = "cuda") { ", cuda" } else { "" };
    assert_eq!(features, format!("cpu{cuda})"));
    let top_level = run_git(&["rev-parse", "--show-toplevel"]);
    let is_repository =
        top_level.is_some_and(|path| Path::new(&path) == Path::new(env!("CARGO_MANIFEST_DIR")));
    if is_repository && std::env::var_os("ACEM3_BUILD_COMMIT").is_none() {
        let head = run_git(&["rev-parse", "--short=7", "HEAD"]).unwrap();
        assert_eq!(commit.trim_end_matches("-dirty"), head);
    }
    assert_eq!(
        folder.run(&["judge", "--version"]).stdout,
        version.replace("acem3 ", "acem3-judge ")
    );
}

#[test]
fn output_files_contain_version_without_commit() {
    let folder = Folder::with_cases(1);
    assert_eq!(folder.judge("out", &[]).exit_code, 0);
    assert_eq!(folder.manifest("out")["version"], env!("CARGO_PKG_VERSION"));
    let phantoms = folder.run(&["data", "phantoms", "--count", "1", "--out", "toy"]);
    assert_eq!(phantoms.exit_code, 0, "{}", phantoms.stderr);
    let metadata = folder.read("toy/phantoms.json");
    assert!(metadata.contains(concat!("\"", env!("CARGO_PKG_VERSION"), "\"")), "{metadata}");
}

#[test]
fn completion_scripts_list_the_commands() {
    let folder = Folder::empty();
    for shell in ["bash", "elvish", "fish", "powershell", "zsh"] {
        let script = folder.run(&["completions", shell]);
        assert_eq!((script.exit_code, script.stderr.as_str()), (0, ""));
        for command in Cli::command().get_subcommands() {
            let name = command.get_name();
            assert!(script.stdout.contains(name), "{shell}: {name} is missing");
        }
        assert!(script.stdout.contains("--panel"), "{shell}: --panel is missing");
    }
    assert_eq!(folder.run(&["completions", "cmd"]).exit_code, 2);
}

#[test]
#[expect(clippy::print_stderr, reason = "a skipped test prints a message")]
fn bash_completes_commands_and_flags() {
    let folder = Folder::empty();
    folder.write("acem3.bash", &folder.run(&["completions", "bash"]).stdout);
    let complete = |words: &str, index: usize| {
        let script = format!(
            "source ./acem3.bash; COMP_WORDS=({words}); COMP_CWORD={index}; \
             _acem3 acem3 \"${{COMP_WORDS[{index}]}}\" \"${{COMP_WORDS[{index}-1]}}\"; \
             echo \"${{COMPREPLY[*]}}\""
        );
        let mut bash = Command::new("bash");
        bash.current_dir(folder.path("")).args(["-c", &script]);
        let output = bash.output().ok()?;
        Some(String::from_utf8(output.stdout).unwrap().trim().to_owned())
    };
    let Some(completion) = complete("acem3 ju", 1) else {
        eprintln!("skipped: cannot run bash");
        return;
    };
    assert_eq!(completion, "judge");
    assert_eq!(complete("acem3 judge --basel", 2).unwrap(), "--baseline");
}

/// Counts a command and the visible commands below it.
fn count_visible(command: &clap::Command) -> usize {
    let visible = command.get_subcommands().filter(|c| !c.is_hide_set());
    1 + visible.map(count_visible).sum::<usize>()
}

#[test]
fn every_command_has_a_man_page() {
    let folder = Folder::empty();
    let output = folder.run(&["man", "--out", "pages"]);
    assert_eq!((output.exit_code, output.stdout.as_str()), (0, ""), "{}", output.stderr);
    let page_count = fs::read_dir(folder.path("pages")).unwrap().count();
    assert_eq!(page_count, count_visible(&Cli::command()));
    let main_page = folder.read("pages/acem3.1");
    assert!(main_page.contains("acem3\\-judge(1)"), "{main_page}");
    let page = folder.read("pages/acem3-judge.1");
    let judge = Cli::command();
    let judge = judge.find_subcommand("judge").unwrap();
    let flags: Vec<&str> = judge.get_arguments().filter_map(|a| a.get_long()).collect();
    assert!(flags.contains(&"max-unscored"));
    for flag in flags {
        let flag = format!("\\-\\-{}", flag.replace('-', "\\-"));
        assert!(page.contains(&flag), "{flag} is missing");
    }
    assert!(folder.read("pages/acem3-data-check.1").contains("min\\-responses"));
}
