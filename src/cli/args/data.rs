//! Arguments of `acem3 data`.

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};

use super::answers::AnswersArgs;
use super::construction::EvaluationsArgs;
use super::knowledge::{IndexArgs, SearchArgs};
use super::preferences::PreferenceArgs;
use super::quality::QualityArgs;
use super::review::ReviewArgs;
use super::shared::{OutputFormat, SourceArgs};
use crate::data::cases::{Lang, SourceOptions};
use crate::data::imports::{ColumnEntry, ColumnRoles};

/// Arguments of `acem3 data`.
#[derive(Args, Clone, Debug)]
pub struct DataArgs {
    /// The command to run.
    #[command(subcommand)]
    pub command: DataCommand,
}

/// The commands of `acem3 data`.
#[derive(Clone, Debug, Subcommand)]
pub enum DataCommand {
    /// Ask models the questions of cases, and write their answers for a judge
    Answers(Box<AnswersArgs>),
    /// Check cases without judging them, decode their images, and list every problem
    ///
    /// Exits with code 1 if there is a problem.
    Check(CheckArgs),
    /// Convert the answers that an evaluation harness, a batch interface or a table contains to cases
    ///
    /// Reads samples of lm-evaluation-harness and lmms-eval, predictions of VLMEvalKit, results of
    /// MedEvalKit, the scenario state of HELM, OpenAI batch input with its output, questions with
    /// answers in LLaVA's format, and CSV, JSON, JSONL, Parquet and Excel tables. Files of several
    /// models about one data set are joined by the ids of their questions.
    Import(ImportArgs),
    /// Build a BM25 index of medical texts, in which a judge or teacher looks up what it asks
    Index(IndexArgs),
    /// Generate cases with known verdicts: images with lesions, questions, good and bad responses
    ///
    /// A rule gives the correct score of every criterion. These scores are written as labels, so
    /// the cases test any judge, including its image sensitivity.
    Phantoms(PhantomArgs),
    /// Collect evaluations of responses from a teacher, check them, and write them as training data
    ///
    /// The teacher is any judge: a panel or a served model. Its verdicts are compared with labels and
    /// references; what contradicts them is rejected with the reason.
    Evaluations(Box<EvaluationsArgs>),
    /// Generate preference pairs for DPO in the format of TRL's trainer
    ///
    /// Each pair has a correct evaluation, of a phantom or your own, and a worse one derived from
    /// it.
    Preferences(PreferenceArgs),
    /// Predict for each evaluation whether it belongs to the better-rated half, for curriculum
    /// training
    ///
    /// Fits a logistic regression on text features of the rated evaluations, and prints its
    /// accuracy on held-out ones. With `--embeddings`, a support vector machine on sentence
    /// embeddings too, whose probabilities are then the qualities.
    Quality(QualityArgs),
    /// Let people review a sample of evaluations, and leave out what they reject
    Review(ReviewArgs),
    /// Print the JSON Schema of cases or records
    Schema(SchemaArgs),
    /// Search an index and print the best passages with their scores
    Search(SearchArgs),
}

/// Arguments of `acem3 data check`.
#[derive(Args, Clone, Debug)]
pub struct CheckArgs {
    /// The cases to check.
    #[command(flatten)]
    pub source: SourceArgs,
    /// Require at least N responses per case
    #[arg(long, value_name = "N", default_value_t = 2, env = "ACEM3_MIN_RESPONSES")]
    pub min_responses: usize,
    /// Print the problems in this format
    #[arg(long, value_enum, default_value_t = OutputFormat::Text, env = "ACEM3_FORMAT")]
    pub format: OutputFormat,
}

/// Arguments of `acem3 data import`.
#[derive(Args, Clone, Debug)]
pub struct ImportArgs {
    /// Files or folders with the answers; MODEL=PATH names the model of a file that does not
    #[arg(required = true, value_name = "PATH")]
    pub paths: Vec<PathBuf>,
    /// Write the cases to FILE, and embedded images to the folder `images` next to it
    #[arg(short, long, value_name = "FILE", env = "ACEM3_OUT")]
    pub out: PathBuf,
    /// Read tables with these columns: `id=`, `image=`, `question=`, `reference=`, `model=`,
    /// `answer=` or `answer:MODEL=` and the name of a column, separated by commas
    #[arg(long, value_name = "ROLE=COLUMN", value_delimiter = ',', env = "ACEM3_COLUMNS")]
    pub columns: Vec<ColumnEntry>,
    /// Look in folder DIR for images with relative paths, and for VLMEvalKit's data sets
    #[arg(long, value_name = "DIR", env = "ACEM3_IMAGES")]
    pub images: Option<PathBuf>,
    /// Add the answers of a model: a JSONL file with `question_id`, `text` and `model_id` on each
    /// line, or a folder of such files (repeatable)
    #[arg(long, value_name = "FILE", env = "ACEM3_ANSWERS")]
    pub answers: Vec<PathBuf>,
    /// Take missing images, such as those of MedEvalKit's results, from the data set at PATH, whose
    /// questions must be the same in the same order
    #[arg(long, value_name = "PATH", env = "ACEM3_QUESTIONS")]
    pub questions: Option<PathBuf>,
    /// Read this split of a data set (train, validate, ...)
    #[arg(long, value_name = "NAME", env = "ACEM3_SPLIT")]
    pub split: Option<String>,
    /// Read only questions of a data set in this language
    #[arg(long, value_enum, default_value_t = Lang::En, env = "ACEM3_LANG")]
    pub lang: Lang,
}

impl ImportArgs {
    /// Returns the options for opening the paths.
    pub fn to_options(&self) -> SourceOptions {
        SourceOptions {
            answers: self.answers.clone(),
            lang: self.lang,
            split: self.split.clone(),
            with_reference: false,
            min_responses: 0,
            columns: ColumnRoles::from_entries(&self.columns),
            images: self.images.clone(),
            ignores_answers: false,
        }
    }

    /// Returns the paths, each with the name of its model if the user named it.
    pub fn named_paths(&self) -> Vec<(Option<String>, PathBuf)> {
        let named = self.paths.iter().map(|path| {
            let text = path.to_string_lossy();
            match text.split_once('=').filter(|(model, _)| !path.exists() && !model.is_empty()) {
                Some((model, path)) => (Some(model.to_owned()), PathBuf::from(path)),
                None => (None, path.clone()),
            }
        });
        named.collect()
    }
}

/// Arguments of `acem3 data phantoms`.
#[derive(Args, Clone, Debug)]
pub struct PhantomArgs {
    /// Write `cases.jsonl` and `images/` to folder DIR
    #[arg(short, long, value_name = "DIR", env = "ACEM3_OUT")]
    pub out: PathBuf,
    /// Generate N cases
    #[arg(short = 'n', long, value_name = "N", default_value_t = 12, env = "ACEM3_COUNT")]
    pub count: u64,
    /// Seed the random numbers with SEED; equal seeds give equal files
    #[arg(long, default_value_t = 1, env = "ACEM3_SEED")]
    pub seed: u64,
}

/// Arguments of `acem3 data schema`.
#[derive(Args, Clone, Copy, Debug)]
pub struct SchemaArgs {
    /// File to describe
    #[arg(value_enum, value_name = "FILE_TYPE")]
    pub file_type: SchemaFileType,
}

/// A file format with a JSON Schema.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum SchemaFileType {
    /// One line of `cases.jsonl`, which `acem3 judge` reads
    Cases,
    /// One line of `records.jsonl`, which `acem3 judge` writes
    Records,
}
