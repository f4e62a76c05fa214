//! The judge and its settings.

use clap::Args;

use super::device::DeviceArgs;
use super::knowledge::KnowledgeArgs;
use super::samples::SamplesArgs;
use super::served::ServedArgs;
use crate::checkpoints::hub::HubArgs;
use crate::judging::panel::JudgeOptions;
use crate::support::device::{DeviceChoice, DtypeChoice};
use crate::support::terminal::switch::parse_switch;

/// Default of `--batch-size`.
const DEFAULT_BATCH_SIZE: u32 = 64;

/// Arguments that select a judge and its settings.
#[derive(Args, Clone, Debug)]
#[command(next_help_heading = "Judge")]
pub struct JudgePanelArgs {
    /// Judge with PANEL, three experts and a conclusion model: a panel folder; the folder of a
    /// published checkpoint (LLaVA, InternVL, Gemma 3, Llama, Mistral, Qwen2) or a .gguf file (text
    /// only), used as all four; a .toml file that names the four; `owner/name[@revision]` on the
    /// Hugging Face Hub; or the URL of a server up to `/v1`, with --model [default: the embedded
    /// panel]
    #[arg(long, value_name = "PANEL", env = "ACEM3_PANEL")]
    pub panel: Option<String>,
    /// The use of the hub.
    #[command(flatten)]
    pub hub: HubArgs,
    /// The device.
    #[command(flatten)]
    pub device: DeviceArgs,
    /// Judge at most N pairs at the same time on each device: as many as take 8 seconds together, or 4
    /// if those take longer; affects speed and memory, not results
    #[arg(long, value_name = "N", default_value_t = DEFAULT_BATCH_SIZE, env = "ACEM3_BATCH_SIZE")]
    #[arg(value_parser = clap::value_parser!(u32).range(1..=4096))]
    pub batch_size: u32,
    /// Use at most this much memory for texts in progress, such as 800M or 8G; affects speed,
    /// not results [default: half of what is free, four fifths on a GPU]
    #[arg(long, value_name = "SIZE", env = "ACEM3_MEMORY", value_parser = parse_size)]
    pub memory: Option<u64>,
    /// Judge each pair in one presentation order only: half the cost, no protection against
    /// position bias
    #[arg(long, env = "ACEM3_SINGLE_ORDER", value_parser = parse_switch)]
    pub single_order: bool,
    /// The samples of analyses.
    #[command(flatten)]
    pub samples: SamplesArgs,
    /// Generate scores without analyses: faster, less reliable
    #[arg(long, env = "ACEM3_SCORES_ONLY", value_parser = parse_switch)]
    pub scores_only: bool,
    /// Knowledge completion.
    #[command(flatten)]
    pub knowledge: KnowledgeArgs,
    /// The server of a served judge. This field is the last one, because clap applies its help heading
    /// to all arguments after it.
    #[command(flatten)]
    pub served: ServedArgs,
}

impl JudgePanelArgs {
    /// Returns the options of the run.
    ///
    /// # Errors
    ///
    /// Samples are requested of texts that have no analysis.
    pub fn judge_options(&self) -> anyhow::Result<JudgeOptions> {
        if self.scores_only && self.samples.is_set() {
            anyhow::bail!(
                "--samples: with --scores-only there is no analysis that could differ\n\
                 hint: omit one of the two flags"
            );
        }
        Ok(JudgeOptions { single_order: self.single_order, samples: self.samples.samples })
    }

    /// Returns the flags that only matter for members on this machine and that the user set to other values
    /// than the default.
    pub fn set_local_flags(&self) -> Vec<&'static str> {
        let DeviceArgs { device, dtype } = &self.device;
        let flags = [
            ("--device", *device != DeviceChoice::Auto),
            ("--dtype", *dtype != DtypeChoice::F32),
            ("--batch-size", self.batch_size != DEFAULT_BATCH_SIZE),
            ("--memory", self.memory.is_some()),
        ];
        flags.into_iter().filter_map(|(name, is_set)| is_set.then_some(name)).collect()
    }
}

/// Parses a number of bytes with an optional `K`, `M` or `G`, powers of 1024.
pub(in crate::cli::args) fn parse_size(text: &str) -> Result<u64, String> {
    let expected = "expected a size such as 800M or 8G";
    let (number, factor) = match text.char_indices().last() {
        Some((end, 'K' | 'k')) => (&text[..end], 1 << 10),
        Some((end, 'M' | 'm')) => (&text[..end], 1 << 20),
        Some((end, 'G' | 'g')) => (&text[..end], 1 << 30),
        _ => (text, 1),
    };
    let number: f64 = number.parse().map_err(|_| expected.to_owned())?;
    let bytes = number * f64::from(factor);
    if (1e6..1e15).contains(&bytes) {
        Ok(bytes as u64)
    } else {
        Err(format!("{expected}, at least 1M"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_have_units() {
        assert_eq!(parse_size("1.5G"), Ok(3 << 29));
        assert_eq!(parse_size("2000000"), Ok(2_000_000));
        assert_eq!(parse_size("16m"), Ok(16 << 20));
        for invalid in ["", "G", "8GB", "-1G", "NaN", "inf", "12", "1e300G", "ä"] {
            assert!(parse_size(invalid).is_err(), "{invalid}");
        }
    }
}
