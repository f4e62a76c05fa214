//! Arguments of `acem3 data answers`.

use std::path::PathBuf;

use clap::Args;

use super::shared::judge_panel::parse_size;
use super::shared::requests::RequestArgs;
use super::shared::value_parsers::{parse_at_least_one, parse_percent};
use super::shared::{DeviceArgs, DicomArgs, OutputFormat, SourceArgs};
use crate::checkpoints::hub::HubArgs;
use crate::data::cases::{Lang, SourceOptions};
use crate::data::imports::ColumnEntry;
use crate::judging::judge::text_writer::TextSampling;
use crate::judging::served::endpoint::engine::ServingEngine;
use crate::support::terminal::switch::parse_switch;
use crate::support::terminal::verbosity::ProgressMode;

const EXAMPLES: &str = "\
Examples:
  acem3 data answers slake/ --panel http://127.0.0.1:8000/v1 --model NAME \\
    --out answers/NAME.jsonl
      Ask a model that vLLM, SGLang, llama.cpp or a host serves
  acem3 data answers cases --panel llava-1.5-7b --out answers/llava.jsonl
      Ask a checkpoint on this machine
  acem3 data answers cases --panel URL --model NAME --out answers/NAME.jsonl \\
    --temperature 0.5 --top-k 50
      Draw the answers as AutoMedEval does
  acem3 judge cases --answers answers --out verdicts
      Judge all answers

Run the same command again to resume. It asks questions without an answer again if \
the server failed. The settings are in answers/NAME.run.json; a command with other \
settings needs another file.";

/// Arguments of `acem3 data answers`.
#[derive(Args, Clone, Debug)]
#[command(after_help = EXAMPLES)]
pub struct AnswersArgs {
    /// The questions to ask.
    #[command(flatten)]
    pub questions: QuestionArgs,
    /// Write one line per question to FILE (.jsonl) in LLaVA's format: `question_id`, `text`, `model_id`
    #[arg(short, long, value_name = "FILE", env = "ACEM3_OUT")]
    pub out: PathBuf,
    /// Name the model NAME in the answers [default: --model, or the name of the checkpoint]
    #[arg(long = "as", value_name = "NAME", env = "ACEM3_AS")]
    pub model_id: Option<String>,
    /// Ask with the template in FILE: `{question}` is the place of the question, `<image>` that of the
    /// image [default: the image, then the question alone]
    #[arg(long, value_name = "FILE", env = "ACEM3_PROMPT")]
    pub prompt: Option<PathBuf>,
    /// Ask the questions alone: the model sees no images
    #[arg(long, env = "ACEM3_TEXT_ONLY", value_parser = parse_switch)]
    pub text_only: bool,
    /// Write at most N tokens per answer; longer answers are cut, and marked
    #[arg(long, value_name = "N", default_value_t = 200, env = "ACEM3_MAX_TOKENS")]
    #[arg(value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    pub max_tokens: u32,
    /// Draw tokens at this temperature; 0 takes the most probable one, as a checkpoint always does
    #[arg(long, value_name = "T", default_value_t = 0.0, env = "ACEM3_TEMPERATURE")]
    #[arg(value_parser = parse_temperature)]
    pub temperature: f64,
    /// Draw from the K most probable tokens [default: all]
    #[arg(long, value_name = "K", env = "ACEM3_TOP_K", value_parser = parse_at_least_one::<u32>)]
    pub top_k: Option<u32>,
    /// Seed the random numbers of a server with SEED
    #[arg(long, value_name = "SEED", env = "ACEM3_SEED")]
    pub seed: Option<u64>,
    /// Ask only the first N questions
    #[arg(long, value_name = "N", env = "ACEM3_LIMIT", value_parser = parse_at_least_one::<u64>)]
    pub limit: Option<u64>,
    /// Exit with code 3 if more than PERCENT of the questions have no answer
    #[arg(
        long,
        value_name = "PERCENT",
        env = "ACEM3_MAX_UNANSWERED",
        value_parser = parse_percent,
        default_value = "50"
    )]
    pub max_unanswered: f64,
    /// Ask three questions, print what all of them would need (requests, tokens, cost, time), and write
    /// nothing
    #[arg(long, env = "ACEM3_DRY_RUN", value_parser = parse_switch)]
    pub dry_run: bool,
    /// Print the summary in this format
    #[arg(long, value_enum, default_value_t = OutputFormat::Text, env = "ACEM3_FORMAT")]
    pub format: OutputFormat,
    /// Show progress on stderr in this mode
    #[arg(long, value_enum, value_name = "MODE", default_value_t = ProgressMode::Auto)]
    #[arg(env = "ACEM3_PROGRESS")]
    pub progress: ProgressMode,
    /// The model. This field is the last one, because clap applies its help heading to all arguments
    /// after it.
    #[command(flatten)]
    pub answerer: AnswererArgs,
}

/// Arguments that select questions.
#[derive(Args, Clone, Debug)]
pub struct QuestionArgs {
    /// Questions: cases (a folder or a JSONL file), a data set as released (VQA-RAD, SLAKE, Path-VQA),
    /// files of an evaluation harness, or a table; answers in it are ignored
    #[arg(value_name = "QUESTIONS")]
    pub path: PathBuf,
    /// Read this split of the data set (train, validate, ...)
    #[arg(long, value_name = "NAME", env = "ACEM3_SPLIT")]
    pub split: Option<String>,
    /// Read only questions in this language [default: en]
    #[arg(long, value_enum, env = "ACEM3_LANG")]
    pub lang: Option<Lang>,
    /// Read a table with these columns: `id=`, `image=`, `question=`, `reference=` and the name of a
    /// column, separated by commas
    #[arg(long, value_name = "ROLE=COLUMN", value_delimiter = ',', env = "ACEM3_COLUMNS")]
    pub columns: Vec<ColumnEntry>,
    /// Look in folder DIR for images that imported files name by relative paths
    #[arg(long, value_name = "DIR", env = "ACEM3_IMAGES")]
    pub images: Option<PathBuf>,
    /// Display settings of DICOM images.
    #[command(flatten)]
    pub dicom: DicomArgs,
}

impl QuestionArgs {
    /// Returns the arguments of a source of cases without answers.
    pub fn to_source(&self) -> SourceArgs {
        SourceArgs {
            path: self.path.clone(),
            answers: Vec::new(),
            split: self.split.clone(),
            lang: self.lang,
            with_reference: false,
            columns: self.columns.clone(),
            images: self.images.clone(),
            dicom: self.dicom.clone(),
        }
    }

    /// Returns the options for opening the questions.
    pub fn to_options(&self) -> SourceOptions {
        SourceOptions { ignores_answers: true, ..self.to_source().to_options(0) }
    }
}

/// Arguments that select a model that answers.
#[derive(Args, Clone, Debug)]
#[command(next_help_heading = "Model")]
pub struct AnswererArgs {
    /// Ask PANEL: the URL of a server up to `/v1`, with --model; the folder of a published checkpoint
    /// (LLaVA, InternVL, Gemma 3, Llama, Mistral, Qwen2); a .gguf file (text only); or
    /// `owner/name[@revision]` on the Hugging Face Hub
    #[arg(long, value_name = "PANEL", env = "ACEM3_PANEL")]
    pub panel: String,
    /// The use of the hub.
    #[command(flatten)]
    pub hub: HubArgs,
    /// The device.
    #[command(flatten)]
    pub device: DeviceArgs,
    /// Write at most N answers of a checkpoint at the same time: as many as take 8 seconds together, or
    /// 4 if those take longer; affects speed and memory, not results
    #[arg(long, value_name = "N", default_value_t = 64, env = "ACEM3_BATCH_SIZE")]
    #[arg(value_parser = clap::value_parser!(u32).range(1..=4096))]
    pub batch_size: u32,
    /// Use at most this much memory for answers in progress, such as 800M or 8G; affects speed, not
    /// results [default: half of what is free, four fifths on a GPU]
    #[arg(long, value_name = "SIZE", env = "ACEM3_MEMORY", value_parser = parse_size)]
    pub memory: Option<u64>,
    /// Ask MODEL of the server; for vLLM, the name of an adapter is a model too
    #[arg(long, value_name = "MODEL", env = "ACEM3_MODEL")]
    pub model: Option<String>,
    /// Use the interface of this engine [default: detected]
    #[arg(long, value_enum, value_name = "ENGINE", env = "ACEM3_ENGINE")]
    pub engine: Option<ServingEngine>,
    /// Read the key of the server from the environment variable NAME [default: `OPENAI_API_KEY`, if it
    /// is set]
    #[arg(long, value_name = "NAME", env = "ACEM3_API_KEY_ENV")]
    pub api_key_env: Option<String>,
    /// Send images and questions to HOST; without it, only to servers on this machine
    #[arg(long, value_name = "HOST", env = "ACEM3_ALLOW_HOST", value_delimiter = ',')]
    pub allow_host: Vec<String>,
    /// Limits on requests.
    #[command(flatten)]
    pub requests: RequestArgs,
}

impl AnswersArgs {
    /// Returns how the model writes.
    pub fn to_sampling(&self) -> TextSampling {
        let Self { max_tokens, temperature, top_k, seed, .. } = *self;
        TextSampling { max_tokens, temperature, top_k, seed }
    }
}

/// Parses a temperature.
fn parse_temperature(text: &str) -> Result<f64, String> {
    let temperature = text.trim().parse().ok().filter(|t: &f64| (0.0..=5.0).contains(t));
    temperature.ok_or_else(|| "expected a number from 0 to 5".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn temperatures_are_bounded() {
        assert_eq!(parse_temperature("0.5"), Ok(0.5));
        for invalid in ["-1", "NaN", "inf", "6", ""] {
            assert!(parse_temperature(invalid).is_err(), "{invalid}");
        }
    }
}
