//! Arguments of `acem3 metrics`.

use std::path::PathBuf;

use clap::Args;

use crate::analysis::metrics::Metric;
use crate::checkpoints::hub::HubArgs;
use crate::cli::args::shared::value_parsers::parse_at_least_one;
use crate::cli::args::shared::{CompleteArgs, RECORDS_OR_CASES, SourceArgs, TableFormat};
use crate::support::device::DeviceChoice;
use crate::support::terminal::switch::parse_switch;

const EXAMPLES: &str = "\
Examples:
  acem3 metrics slake/ --split validate --answers a.jsonl --answers b.jsonl
      Compute exact match, closed accuracy, open recall, F1, BLEU and ROUGE of two models
  acem3 metrics slake/ --lang zh --chinese --answers a.jsonl
      Score questions and answers in Chinese
  acem3 metrics verdicts --format csv > metrics.csv
      Score the answers that a run judged, from its records
  acem3 metrics cases --bert roberta-large --bart facebook/bart-large-cnn
      Add BERTScore and BARTScore with models from the hub
  acem3 metrics verdicts --rationales other-verdicts --metrics rouge
      Compare a judge's rationales with those of another judge on the same pairs

Every answer is compared with the reference of its case. Answers without a reference are left \
out, with the reason, and never scored as zero. 95 % confidence intervals are clustered by image. \
Words are separated by spaces, and ROUGE uses ASCII letters and digits only; with --chinese every \
Chinese character is a word.";

/// Arguments of `acem3 metrics`.
#[derive(Args, Clone, Debug)]
#[command(after_help = EXAMPLES, mut_arg("path", |path| path.help(RECORDS_OR_CASES)))]
pub struct MetricsArgs {
    /// The answers: cases, or the folder or records of a run.
    #[command(flatten)]
    pub source: SourceArgs,
    /// Compute these metrics, separated by commas; --bert adds BERTScore, --bart BARTScore
    #[arg(
        long,
        value_enum,
        value_name = "LIST",
        value_delimiter = ',',
        default_values_t = Metric::DEFAULT,
        env = "ACEM3_METRICS"
    )]
    pub metrics: Vec<Metric>,
    /// Compare word stems in ROUGE (Porter stemmer, like rouge-score's `use_stemmer`)
    #[arg(long, env = "ACEM3_STEM", value_parser = parse_switch)]
    pub stem: bool,
    /// Treat every Chinese character as a word (like sacrebleu's tokenizer `zh`)
    #[arg(long, env = "ACEM3_CHINESE", value_parser = parse_switch)]
    pub chinese: bool,
    /// Compare the rationales (analyses) of the run in PATH with those of the run in RECORDS, a
    /// folder or records.jsonl
    #[arg(long, value_name = "RECORDS", env = "ACEM3_RATIONALES")]
    pub rationales: Option<PathBuf>,
    /// Score only the first N cases
    #[arg(long, value_name = "N", env = "ACEM3_LIMIT", value_parser = parse_at_least_one::<u64>)]
    pub limit: Option<u64>,
    /// Write the scores of every answer to FILE (JSONL)
    #[arg(short, long, value_name = "FILE", env = "ACEM3_OUT")]
    pub out: Option<PathBuf>,
    /// The state of the run.
    #[command(flatten)]
    pub run: CompleteArgs,
    /// Print the tables in this format
    #[arg(long, value_enum, default_value_t = TableFormat::Text, env = "ACEM3_FORMAT")]
    pub format: TableFormat,
    /// The models of learned metrics.
    #[command(flatten)]
    pub models: MetricModelArgs,
}

/// Arguments of the metrics that use a model.
#[derive(Args, Clone, Debug)]
#[command(next_help_heading = "BERTScore and BARTScore")]
pub struct MetricModelArgs {
    /// Compute BERTScore with this BERT or RoBERTa: a folder, or `owner/name[@revision]` on the
    /// Hugging Face Hub
    #[arg(long, value_name = "MODEL", env = "ACEM3_BERT")]
    pub bert: Option<String>,
    /// Compare the hidden states of layer N [default: the layer that bert-score uses for this
    /// checkpoint]
    #[arg(long, value_name = "N", requires = "bert", env = "ACEM3_BERT_LAYER")]
    pub bert_layer: Option<usize>,
    /// Weight tokens by inverse document frequency over the references
    #[arg(long, requires = "bert", env = "ACEM3_IDF", value_parser = parse_switch)]
    pub idf: bool,
    /// Rescale BERTScore with the baselines in FILE (from bert-score's `rescale_baseline`)
    #[arg(long, value_name = "FILE", requires = "bert", env = "ACEM3_BERT_BASELINE")]
    pub bert_baseline: Option<PathBuf>,
    /// Compute BARTScore with this BART: a folder, or `owner/name[@revision]` on the Hugging Face
    /// Hub
    #[arg(long, value_name = "MODEL", env = "ACEM3_BART")]
    pub bart: Option<String>,
    /// The use of the hub.
    #[command(flatten)]
    pub hub: HubArgs,
    /// Compute on this device: auto, cpu, cuda or cuda:N
    #[arg(long, default_value = "auto", env = "ACEM3_DEVICE")]
    pub device: DeviceChoice,
    /// Process N texts per batch; affects speed and memory, not results
    #[arg(long, value_name = "N", default_value_t = 32, env = "ACEM3_BATCH_SIZE")]
    #[arg(value_parser = clap::value_parser!(u32).range(1..=4096))]
    pub batch_size: u32,
}
