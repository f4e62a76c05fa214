//! The top level of the command line.

use clap::Parser;

use super::command::Command;
use crate::support::terminal::verbosity::Verbosity;

const EXAMPLES: &str = "\
Examples:
  acem3 judge assets/demo --out demo        Judge the demo cases
  acem3 agree demo                          Compare the verdicts with labels
  acem3 report demo --out demo.html         Write a page with results and cases
  acem3 data phantoms --out toy --count 20  Generate cases with known verdicts
  acem3 data check my-cases.jsonl           List the problems of your cases
  acem3 metrics assets/demo                 Compare answers with references

Exit codes:
  0    success
  1    a check failed
  2    invalid usage or input, or no case or image can be read
  3    more unscored records than --max-unscored allows; by default, more than half
  4    the run failed; completed verdicts are saved, the same command resumes
  130  interrupted; run the same command again";

/// Version, commit and enabled features, from `src/build.rs`. Records do not contain it.
const VERSION: &str = env!("ACEM3_VERSION");

/// The command line of `acem3`.
#[derive(Debug, Parser)]
#[command(name = "acem3", version = VERSION, max_term_width = 100, after_help = EXAMPLES)]
#[command(about = "Judge the answers of medical models to questions about images")]
#[command(propagate_version = true, arg_required_else_help = true)]
pub struct Cli {
    /// The command to run.
    #[command(subcommand)]
    pub command: Command,
    /// The amount of messages.
    #[command(flatten)]
    pub verbosity: Verbosity,
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    #[test]
    fn command_line_is_consistent() {
        Cli::command().debug_assert();
    }
}
