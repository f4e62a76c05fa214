//! Every help page, on a terminal of 80 columns.

use acem3::cli::Cli;
use clap::CommandFactory as _;

use super::mask::{mask, mask_commit};
use super::{COLUMNS, Snapshots, layout, run};
use crate::folder::Folder;

/// The words of every command, those without subcommands too; the first is the program itself.
fn commands() -> Vec<Vec<String>> {
    let mut found = Vec::new();
    let mut open = vec![(Vec::new(), Cli::command())];
    while let Some((words, command)) = open.pop() {
        for inner in command.get_subcommands() {
            let name = inner.get_name().to_owned();
            let words = [&words[..], &[name]].concat();
            open.push((words, inner.clone()));
        }
        found.push(words);
    }
    found.sort();
    found
}

/// The help page of a command.
fn page(folder: &Folder, words: &[String], flag: &str, columns: usize) -> String {
    let words = words.iter().map(String::as_str);
    let args: Vec<&str> = words.chain([flag]).collect();
    let said = run(folder, &args, columns, &[]);
    mask(folder, &layout(&format!("acem3 {}", args.join(" ")), &said))
}

#[test]
fn help_pages() {
    let folder = Folder::empty();
    let mut snapshots = Snapshots::of("help");
    for words in commands() {
        let name = [&["acem3".to_owned()], &words[..]].concat().join("-");
        let text = page(&folder, &words, "--help", COLUMNS);
        snapshots.check(&name, &text);
    }
    // One page as a wide terminal shows it, and one in short.
    let judge = ["judge".to_owned()];
    let wide = page(&folder, &judge, "--help", 200);
    snapshots.check("acem3-judge-on-a-wide-terminal", &wide);
    let short = page(&folder, &judge, "-h", COLUMNS);
    snapshots.check("acem3-judge-in-short", &short);
    let version = mask_commit(&page(&folder, &[], "--version", COLUMNS));
    snapshots.check("acem3-version", &version);
    snapshots.finish();
}

#[test]
fn every_command_has_a_help_page() {
    let all = commands();
    assert!(all.contains(&Vec::new()), "the program itself is missing");
    let named = |words: &[&str]| all.iter().any(|command| command == words);
    assert!(named(&["judge"]) && named(&["data", "check"]), "{all:?}");
}
