//! What may be typed behind `acem3 metrics`.

use std::path::PathBuf;

use clap::Args;
use clap::builder::FalseyValueParser;

use super::{SourceArgs, TableFormat};
use crate::analysis::metrics::Metric;
use crate::checkpoints::hub::HubFlags;
use crate::support::device::DeviceChoice;

pub(super) const EXAMPLES: &str = "\
Examples:
  acem3 metrics slake/ --split validate --answers a.jsonl --answers b.jsonl
      Exact match, closed accuracy, open recall, F1, BLEU and ROUGE of two models.
  acem3 metrics slake/ --lang zh --chinese --answers a.jsonl
      Questions and answers in Chinese.
  acem3 metrics verdicts --format csv > metrics.csv
      The answers that a run judged, from its records.
  acem3 metrics cases --bert roberta-large --bart facebook/bart-large-cnn --out scores.jsonl
      BERTScore and BARTScore too, from the hub; and the scores of every answer.
  acem3 metrics verdicts --rationales others --metrics rouge --bert my-bert --bert-layer 9
      A judge's reasons against those of another judge on the same pairs.

Every answer is compared with its case's reference. An answer without a reference is uncounted, with
its reason; it is never a zero. Intervals are of 95 %, whole images being drawn again. Words are what
spaces divide, and ROUGE sees ASCII letters and digits alone; with --chinese every Chinese character is a word.";

/// `acem3 metrics`.
#[derive(Args, Clone, Debug)]
pub struct MetricsArgs {
    /// What to score; a run's folder or its records too.
    #[command(flatten)]
    pub source: SourceArgs,
    /// Which metrics, separated by commas; --bert and --bart add theirs
    #[arg(
        long,
        value_enum,
        value_delimiter = ',',
        default_values_t = Metric::DEFAULT,
        env = "ACEM3_METRICS"
    )]
    pub metrics: Vec<Metric>,
    /// Compare stems of words in ROUGE (Porter's, as rouge-score's `use_stemmer`)
    #[arg(long, env = "ACEM3_STEM", value_parser = FalseyValueParser::new())]
    pub stem: bool,
    /// Take every Chinese character for a word (as sacrebleu's tokenizer `zh`), for texts that no spaces divide
    #[arg(long, env = "ACEM3_CHINESE", value_parser = FalseyValueParser::new())]
    pub chinese: bool,
    /// Score the analyses in the records, against those in this run's folder or file of records
    #[arg(long, value_name = "RECORDS", env = "ACEM3_RATIONALES")]
    pub rationales: Option<PathBuf>,
    /// The BERT or `RoBERTa` of `BERTScore`: a folder, or `owner/name[@revision]` on the hub
    #[arg(long, value_name = "MODEL", env = "ACEM3_BERT")]
    pub bert: Option<String>,
    /// The layer whose states are compared [default: bert-score's, for checkpoints it knows]
    #[arg(long, value_name = "N", requires = "bert", env = "ACEM3_BERT_LAYER")]
    pub bert_layer: Option<usize>,
    /// Let tokens weigh more the fewer references have them
    #[arg(long, requires = "bert", env = "ACEM3_IDF", value_parser = FalseyValueParser::new())]
    pub idf: bool,
    /// Rescale `BERTScore` by the baselines in this file, one of bert-score's `rescale_baseline`
    #[arg(
        long,
        value_name = "FILE",
        requires = "bert",
        env = "ACEM3_BERT_BASELINE"
    )]
    pub bert_baseline: Option<PathBuf>,
    /// The BART of `BARTScore`: a folder, or `owner/name[@revision]` on the hub
    #[arg(long, value_name = "MODEL", env = "ACEM3_BART")]
    pub bart: Option<String>,
    /// How the hub is used.
    #[command(flatten)]
    pub hub: HubFlags,
    /// Where models compute: auto, cpu, cuda or cuda:1
    #[arg(long, default_value = "auto", env = "ACEM3_DEVICE")]
    pub device: DeviceChoice,
    /// How many texts a model reads at once; it moves the speed and the memory, never a score
    #[arg(long, value_name = "N", default_value_t = 32, env = "ACEM3_BATCH_SIZE")]
    #[arg(value_parser = clap::value_parser!(u32).range(1..=4096))]
    pub batch_size: u32,
    /// Also write the scores of every answer, one JSON line each
    #[arg(short, long, value_name = "FILE", env = "ACEM3_OUT")]
    pub out: Option<PathBuf>,
    /// Stop after so many cases
    #[arg(long, value_name = "N", env = "ACEM3_LIMIT")]
    #[arg(value_parser = clap::value_parser!(u64).range(1..))]
    pub limit: Option<u64>,
    /// The form of the tables on stdout
    #[arg(long, value_enum, default_value_t = TableFormat::Text, env = "ACEM3_FORMAT")]
    pub format: TableFormat,
}
