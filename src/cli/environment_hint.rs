//! Parses the arguments, and says if a wrong value comes from an environment variable.

use std::ffi::OsStr;

use clap::error::{ContextKind, ContextValue};
use clap::{Arg, CommandFactory as _, Parser as _};

use super::args::Cli;
use crate::support::terminal::progress::print_lines;

/// Parses the arguments of the process. Prints help, the version or an error and ends the process,
/// unless the arguments are a valid command.
pub fn parse_or_exit() -> Cli {
    Cli::try_parse().unwrap_or_else(|error| {
        let words: Vec<String> =
            std::env::args_os().map(|word| word.to_string_lossy().into_owned()).collect();
        // As in the parser's own `exit`, nothing can report that the stream is closed.
        let _ = error.print();
        let is_set = |name: &OsStr| std::env::var_os(name).is_some();
        if let Some(hint) = environment_hint(&error, &words, is_set) {
            print_lines(&hint);
        }
        std::process::exit(error.exit_code())
    })
}

/// Returns a hint if the argument that the error names is not among the words and its variable is
/// set.
fn environment_hint(
    error: &clap::Error,
    words: &[String],
    is_set: impl Fn(&OsStr) -> bool,
) -> Option<String> {
    let Some(ContextValue::String(named)) = error.get(ContextKind::InvalidArg) else {
        return None;
    };
    let flag = named.split([' ', '=', '[']).next()?.strip_prefix("--")?;
    let mut root = Cli::command();
    // Adds the global arguments to the subcommands.
    root.build();
    // The subcommand that the words select.
    let command = words
        .iter()
        .skip(1)
        .fold(&root, |command, word| command.find_subcommand(word).unwrap_or(command));
    let arg = command.get_arguments().find(|arg| arg.get_long() == Some(flag))?;
    let variable = arg.get_env().filter(|name| is_set(name))?;
    let is_given = words.iter().any(|word| names_arg(word, arg));
    let hint = || format!("hint: the value is that of the variable {}", variable.display());
    (!is_given).then(hint)
}

/// Returns true if a word is the long or short flag of an argument, alone or with a value.
fn names_arg(word: &str, arg: &Arg) -> bool {
    let long = arg.get_long().and_then(|long| word.strip_prefix("--")?.strip_prefix(long));
    let is_long = long.is_some_and(|rest| rest.is_empty() || rest.starts_with('='));
    // Short flags can be combined.
    let is_short = arg.get_short().is_some_and(|short| {
        word.strip_prefix('-').is_some_and(|rest| !rest.starts_with('-') && rest.contains(short))
    });
    is_long || is_short
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hint(words: &[&str], variables: &[&str]) -> Option<String> {
        let error = Cli::try_parse_from(words).unwrap_err();
        let words: Vec<String> = words.iter().map(|word| (*word).to_owned()).collect();
        environment_hint(&error, &words, |name| variables.iter().any(|v| OsStr::new(v) == name))
    }

    #[test]
    fn only_values_of_variables_are_explained() {
        let long = ["acem3", "data", "phantoms", "--out", "a", "--count", "many"];
        assert_eq!(hint(&long, &["ACEM3_COUNT"]), None);
        for flag in ["-n", "-qn"] {
            let short = ["acem3", "data", "phantoms", "--out", "a", flag, "many"];
            assert_eq!(hint(&short, &["ACEM3_COUNT"]), None);
        }
        // An error about the flag, whose value is not among the words.
        let error = Cli::try_parse_from(long).unwrap_err();
        let words: Vec<String> = long[..5].iter().map(|word| (*word).to_owned()).collect();
        let found = environment_hint(&error, &words, |name| name == "ACEM3_COUNT");
        assert_eq!(found.unwrap(), "hint: the value is that of the variable ACEM3_COUNT");
        assert_eq!(environment_hint(&error, &words, |_| false), None);
    }
}
