//! Arguments of `acem3 completions`.

use clap::Args;
use clap_complete::Shell;

const EXAMPLES: &str = "\
Examples:
  acem3 completions bash > ~/.local/share/bash-completion/completions/acem3
  acem3 completions fish > ~/.config/fish/completions/acem3.fish
  acem3 completions zsh > ~/.zfunc/_acem3
      Requires ~/.zfunc in `fpath`";

/// Arguments of `acem3 completions`.
#[derive(Args, Clone, Copy, Debug)]
#[command(after_help = EXAMPLES)]
pub struct CompletionsArgs {
    /// Shell that reads the script
    #[arg(value_enum)]
    pub shell: Shell,
}
