//! Arguments of `acem3 panel`.

use std::path::PathBuf;

use clap::{Args, Subcommand};

use super::shared::{FormArgs, OutputFormat, SourceArgs};
use crate::checkpoints::hub::HubArgs;

/// Arguments of `acem3 panel`.
#[derive(Args, Clone, Debug)]
pub struct PanelArgs {
    /// The command to run.
    #[command(subcommand)]
    pub command: PanelCommand,
}

/// The commands of `acem3 panel`.
#[derive(Clone, Debug, Subcommand)]
pub enum PanelCommand {
    /// Load a panel and list its members, sizes, tokenizers, encoders and hashes
    Inspect(PanelInspectArgs),
    /// Write a panel of LoRA adapters as files that servers such as vLLM load
    Export(PanelExportArgs),
    /// Print what each member reads about a case, and the format of what it writes
    Prompts(Box<PanelPromptsArgs>),
}

const EXPORT_EXAMPLES: &str = "\
Examples:
  acem3 panel export RUN/panel --peft --out served
      Write the base and four adapters, and print the command that serves them
  acem3 judge cases --panel served/served.toml --out judged
      Judge with the served panel

The panel is one that `acem3 train` wrote with [stages.lora], from a LLaVA checkpoint (`start`).";

/// Arguments of `acem3 panel export`.
#[derive(Args, Clone, Debug)]
#[command(after_help = EXPORT_EXAMPLES)]
pub struct PanelExportArgs {
    /// Panel, as for `acem3 judge --panel`
    pub panel: String,
    /// Write the base once in the layout of the hub, and an adapter of PEFT for each member
    #[arg(long, required = true)]
    pub peft: bool,
    /// Write to folder DIR
    #[arg(short, long, value_name = "DIR", env = "ACEM3_OUT")]
    pub out: PathBuf,
    /// Base URL where the panel will be served
    #[arg(
        long,
        value_name = "URL",
        default_value = "http://127.0.0.1:8000/v1",
        env = "ACEM3_ENDPOINT"
    )]
    pub endpoint: String,
    /// Access to the hub, for panels with a hub id.
    #[command(flatten)]
    pub hub: HubArgs,
}

const PROMPTS_EXAMPLES: &str = "\
Examples:
  acem3 panel prompts cases
      Print the prompts about the first pair of the first case
  acem3 panel prompts cases --case c7 --panel llava-7b --form correctness
      Print the prompt about the first response to case c7 and its reference answer

`<image>` stands for the image tokens, and `<… evaluation>` for the text of an expert, which the \
conclusion model reads.";

/// Arguments of `acem3 panel prompts`.
#[derive(Args, Clone, Debug)]
#[command(after_help = PROMPTS_EXAMPLES)]
pub struct PanelPromptsArgs {
    /// The cases.
    #[command(flatten)]
    pub source: SourceArgs,
    /// Show the prompts about the case with this id [default: the first case that can be judged]
    #[arg(long, value_name = "ID", env = "ACEM3_CASE")]
    pub case: Option<String>,
    /// Panel, as for `acem3 judge --panel` [default: the embedded panel]
    #[arg(long, value_name = "PANEL", env = "ACEM3_PANEL")]
    pub panel: Option<String>,
    /// What a verdict is about.
    #[command(flatten)]
    pub form: FormArgs,
    /// Access to the hub, for panels with a hub id.
    #[command(flatten)]
    pub hub: HubArgs,
    /// Print the prompts in this format
    #[arg(long, value_enum, default_value_t = OutputFormat::Text, env = "ACEM3_FORMAT")]
    pub format: OutputFormat,
}

/// Arguments of `acem3 panel inspect`.
#[derive(Args, Clone, Debug)]
pub struct PanelInspectArgs {
    /// Panel, as for `acem3 judge --panel` [default: the embedded panel]
    pub panel: Option<String>,
    /// Access to the hub, for panels with a hub id.
    #[command(flatten)]
    pub hub: HubArgs,
    /// Print the description in this format
    #[arg(long, value_enum, default_value_t = OutputFormat::Text, env = "ACEM3_FORMAT")]
    pub format: OutputFormat,
}
