//! Arguments of `acem3 man`.

use std::path::PathBuf;

use clap::Args;

pub(super) const EXAMPLES: &str = "\
Example:
  acem3 man --out ~/.local/share/man/man1      then `man acem3-judge` finds its page";

/// `acem3 man`.
#[derive(Args, Clone, Debug)]
pub struct ManArgs {
    /// Folder for the pages; it is created if it does not exist
    #[arg(short, long, value_name = "DIR", env = "ACEM3_OUT")]
    pub out: PathBuf,
}
