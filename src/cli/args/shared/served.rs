//! Judges behind endpoints.

use clap::Args;

use super::requests::RequestArgs;
use crate::judging::served::endpoint::engine::ServingEngine;
use crate::support::terminal::switch::parse_switch;

/// Arguments of a judge that a server runs.
#[derive(Args, Clone, Debug)]
#[command(next_help_heading = "Served judge")]
pub struct ServedArgs {
    /// Judge with MODEL of the server; for vLLM, the name of an adapter is a model too
    #[arg(long, value_name = "MODEL", env = "ACEM3_MODEL")]
    pub model: Option<String>,
    /// Use the interface of this engine [default: detected]
    #[arg(long, value_enum, value_name = "ENGINE", env = "ACEM3_ENGINE")]
    pub engine: Option<ServingEngine>,
    /// Read the key of the server from the environment variable NAME [default: `OPENAI_API_KEY`, if it
    /// is set]
    #[arg(long, value_name = "NAME", env = "ACEM3_API_KEY_ENV")]
    pub api_key_env: Option<String>,
    /// Send images and texts of the cases to HOST; without it, only to servers on this machine
    #[arg(long, value_name = "HOST", env = "ACEM3_ALLOW_HOST", value_delimiter = ',')]
    pub allow_host: Vec<String>,
    /// Judge the texts alone: the model sees no images
    #[arg(long, env = "ACEM3_TEXT_ONLY", value_parser = parse_switch)]
    pub text_only: bool,
    /// Request the label mass of every score from servers that return probabilities after the
    /// constraint: one more request per score, about six times as many
    #[arg(long, env = "ACEM3_LABEL_MASS", value_parser = parse_switch)]
    pub label_mass: bool,
    /// Limits on requests.
    #[command(flatten)]
    pub requests: RequestArgs,
}

impl ServedArgs {
    /// Returns the flags that have no effect without a server and that the user set to other values than the
    /// default. Flags that are an error without a server are not among them.
    pub fn set_flags_without_effect(&self) -> Vec<&'static str> {
        let own = [
            ("--api-key-env", self.api_key_env.is_some()),
            ("--allow-host", !self.allow_host.is_empty()),
        ];
        let own = own.into_iter().filter_map(|(name, is_set)| is_set.then_some(name));
        own.chain(self.requests.set_flags()).collect()
    }
}
