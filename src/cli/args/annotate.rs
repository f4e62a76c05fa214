//! Arguments of `acem3 annotate`.

use std::net::SocketAddr;
use std::path::PathBuf;

use clap::Args;

use super::shared::SourceArgs;
use crate::support::terminal::switch::parse_switch;

const ANNOTATE_EXAMPLES: &str = "\
A study is a TOML file:
  name = \"chest-ct\"
  seed = 7
  overlap = 2                                # raters of each case; default: all
  raters = [\"dr-lee\", \"dr-ito\", { name = \"dr-roy\", cases = 20 }]
  rubric = \"ace_m3\"                          # or a file; default: ace_m3
  stages = [\"ratings\", \"preference\"]         # default: both
  evaluations = [\"runs/judge\"]              # runs of judges to rate afterwards
  instructions = \"Look at the image first.\"

Examples:
  acem3 annotate assets/demo --study study.toml --out ratings
      Serve the site on this machine, and print a link for each rater
  acem3 annotate cases.jsonl --study study.toml --out ratings --results
      Write scores.csv, preferences.csv, details.csv, label_studio.json and others to the folder
  acem3 agree RUN --labels ratings/scores.csv
      Compare the verdicts of a judge with the ratings";

/// Arguments of `acem3 annotate`.
#[derive(Args, Clone, Debug)]
#[command(after_help = ANNOTATE_EXAMPLES)]
pub struct AnnotateArgs {
    /// The cases to rate.
    #[command(flatten)]
    pub source: SourceArgs,
    /// File with the raters and settings of the study
    #[arg(long, value_name = "FILE", env = "ACEM3_STUDY")]
    pub study: PathBuf,
    /// Let raters decide about the pairs in FILE, the `unresolved.jsonl` of a round of `acem3 train
    /// introspect` on these cases; needs `stages = ["decision"]` in the study
    #[arg(long, value_name = "FILE", env = "ACEM3_UNRESOLVED")]
    pub unresolved: Option<PathBuf>,
    /// Keep the ratings in folder DIR; the same command continues them
    #[arg(short, long, value_name = "DIR", env = "ACEM3_OUT")]
    pub out: PathBuf,
    /// Serve the site at this address and port. Another address than 127.0.0.1 is visible to other
    /// machines
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:8080", env = "ACEM3_LISTEN")]
    #[arg(value_parser = parse_address)]
    pub listen: SocketAddr,
    /// Name under which raters visit the site, for example behind a reverse proxy with TLS
    /// (repeatable)
    #[arg(long, value_name = "NAME", env = "ACEM3_SITE_NAME", value_parser = parse_site_name)]
    pub site_name: Vec<String>,
    /// Write the results of the study to the folder instead of serving the site
    #[arg(long, env = "ACEM3_RESULTS", value_parser = parse_switch)]
    pub results: bool,
}

fn parse_address(text: &str) -> Result<SocketAddr, String> {
    let error = "expected an IP address and a port, such as 127.0.0.1:8080 or [::1]:8080";
    text.parse().map_err(|_| error.to_owned())
}

/// Parses a name of the site: a host name or IP address, with or without a port.
fn parse_site_name(text: &str) -> Result<String, String> {
    let is_allowed = |c: char| c.is_ascii_alphanumeric() || "-._:[]".contains(c);
    if text.is_empty() || !text.chars().all(is_allowed) {
        return Err(
            "expected a name such as rate.example.org, without https:// and without a path"
                .to_owned(),
        );
    }
    Ok(text.to_owned())
}
