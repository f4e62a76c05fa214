//! Every help page.

use acem3::cli::args::Cli;
use clap::CommandFactory as _;

use super::mask::{mask, mask_build};
use super::{COLUMNS, Snapshots, layout, run};
use crate::folder::Folder;

/// Returns the words of every command and subcommand. The program itself has no words.
fn commands() -> Vec<Vec<String>> {
    let mut found = Vec::new();
    let mut pending = vec![(Vec::new(), Cli::command())];
    while let Some((words, command)) = pending.pop() {
        for inner in command.get_subcommands() {
            let name = inner.get_name().to_owned();
            let words = [&words[..], &[name]].concat();
            pending.push((words, inner.clone()));
        }
        found.push(words);
    }
    found.sort();
    found
}

/// Runs a command with a help flag and returns its masked transcript.
fn page(folder: &Folder, words: &[String], flag: &str, columns: usize) -> String {
    let words = words.iter().map(String::as_str);
    let args: Vec<&str> = words.chain([flag]).collect();
    let output = run(folder, &args, columns, &[]);
    mask(folder, &layout(&format!("acem3 {}", args.join(" ")), &output))
}

#[test]
fn help_pages_match_snapshots() {
    let folder = Folder::empty();
    let mut snapshots = Snapshots::open("help");
    for words in commands() {
        let name = [&["acem3".to_owned()], &words[..]].concat().join("-");
        let text = page(&folder, &words, "--help", COLUMNS);
        snapshots.check(&name, &text);
    }
    // One page on a wide terminal, and one short page.
    let judge = ["judge".to_owned()];
    let wide = page(&folder, &judge, "--help", 200);
    snapshots.check("acem3-judge-on-a-wide-terminal", &wide);
    let short = page(&folder, &judge, "-h", COLUMNS);
    snapshots.check("acem3-judge-in-short", &short);
    let version = mask_build(&page(&folder, &[], "--version", COLUMNS));
    snapshots.check("acem3-version", &version);
    snapshots.finish();
}

#[test]
fn command_list_includes_subcommands() {
    let all = commands();
    assert!(all.contains(&Vec::new()), "the program itself is missing");
    let named = |words: &[&str]| all.iter().any(|command| command == words);
    assert!(named(&["judge"]) && named(&["data", "check"]), "{all:?}");
}
