//! Arguments of `acem3 completions`.

use clap::Args;
use clap_complete::Shell;

pub(super) const EXAMPLES: &str = "\
Examples:
  acem3 completions bash > ~/.local/share/bash-completion/completions/acem3
  acem3 completions fish > ~/.config/fish/completions/acem3.fish
  acem3 completions zsh > ~/.zfunc/_acem3      with ~/.zfunc in `fpath`";

/// `acem3 completions`.
#[derive(Args, Clone, Copy, Debug)]
pub struct CompletionsArgs {
    /// Shell that reads the script
    #[arg(value_enum)]
    pub shell: Shell,
}
