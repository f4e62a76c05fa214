//! Arguments of `acem3 man`.

use std::path::PathBuf;

use clap::Args;

const EXAMPLES: &str = "\
Example:
  acem3 man --out ~/.local/share/man/man1
      Show a page with `man acem3-judge`";

/// Arguments of `acem3 man`.
#[derive(Args, Clone, Debug)]
#[command(after_help = EXAMPLES)]
pub struct ManArgs {
    /// Write the pages to folder DIR
    #[arg(short, long, value_name = "DIR", env = "ACEM3_OUT")]
    pub out: PathBuf,
}
