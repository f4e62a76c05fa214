//! Arguments of `acem3 data index` and `acem3 data search`.

use std::path::PathBuf;

use clap::Args;

use super::shared::OutputFormat;
use super::shared::value_parsers::parse_at_least_one;
use crate::data::knowledge::{IndexOptions, IndexSettings};
use crate::support::terminal::switch::parse_switch;
use crate::support::terminal::verbosity::ProgressMode;

const INDEX_EXAMPLES: &str = "\
Examples:
  acem3 data index MedQuAD/ --out medquad.index
      Index the XML files of MedQuAD as released
  acem3 data index textbooks/chunk statpearls.jsonl --out books.index
      Index corpora of MedRAG together
  acem3 data search medquad.index 'How is Crohn disease treated?'
      Look at the passages that a judge would get";

/// Arguments of `acem3 data index`.
#[derive(Args, Clone, Debug)]
#[command(after_help = INDEX_EXAMPLES)]
pub struct IndexArgs {
    /// Files, or folders with files: MedQuAD's XML, MedRAG's JSONL, or any JSONL (also .gz), JSON, CSV
    /// or Parquet file with `text`, `content` or `answer`, and optionally `id` and `title`, in each row
    #[arg(required = true, value_name = "CORPUS")]
    pub corpora: Vec<PathBuf>,
    /// Write the index to folder DIR, which must not exist
    #[arg(short, long, value_name = "DIR", env = "ACEM3_OUT")]
    pub out: PathBuf,
    /// Split documents into passages of N words
    #[arg(
        long,
        value_name = "N",
        default_value_t = IndexSettings::default().passage_words,
        env = "ACEM3_PASSAGE_WORDS",
        value_parser = parse_passage_words
    )]
    pub passage_words: usize,
    /// Repeat the last N words of a passage at the start of the next one
    #[arg(
        long,
        value_name = "N",
        default_value_t = IndexSettings::default().overlap_words,
        env = "ACEM3_OVERLAP_WORDS"
    )]
    pub overlap_words: usize,
    /// Distinguish the forms of a word, such as `treat` and `treated`, instead of indexing English
    /// stems
    #[arg(long, env = "ACEM3_NO_STEMMING", value_parser = parse_switch)]
    pub no_stemming: bool,
    /// Index frequent English words, such as `the`, too
    #[arg(long, env = "ACEM3_STOP_WORDS", value_parser = parse_switch)]
    pub stop_words: bool,
    /// Print the result in this format
    #[arg(long, value_enum, default_value_t = OutputFormat::Text, env = "ACEM3_FORMAT")]
    pub format: OutputFormat,
    /// Show progress on stderr in this mode
    #[arg(
        long,
        value_enum,
        value_name = "MODE",
        default_value_t = ProgressMode::Auto,
        env = "ACEM3_PROGRESS"
    )]
    pub progress: ProgressMode,
}

impl IndexArgs {
    /// Returns what to index, and how.
    pub fn to_options(&self) -> IndexOptions {
        IndexOptions {
            corpora: self.corpora.clone(),
            out: self.out.clone(),
            settings: IndexSettings {
                passage_words: self.passage_words,
                overlap_words: self.overlap_words,
                stemming: !self.no_stemming,
                keeps_stop_words: self.stop_words,
            },
        }
    }
}

/// Arguments of `acem3 data search`.
#[derive(Args, Clone, Debug)]
pub struct SearchArgs {
    /// The folder of an index
    #[arg(value_name = "INDEX")]
    pub index: PathBuf,
    /// The question, or any words
    #[arg(value_name = "QUERY")]
    pub query: String,
    /// Print the N best passages
    #[arg(
        short = 'n',
        long,
        value_name = "N",
        default_value_t = 5,
        env = "ACEM3_COUNT",
        value_parser = parse_at_least_one::<u16>
    )]
    pub count: u16,
    /// Print the passages in this format
    #[arg(long, value_enum, default_value_t = OutputFormat::Text, env = "ACEM3_FORMAT")]
    pub format: OutputFormat,
}

/// Parses the length of a passage in words.
fn parse_passage_words(text: &str) -> Result<usize, String> {
    let words = text.parse::<usize>().ok().filter(|words| (1..=100_000).contains(words));
    words.ok_or_else(|| "expected a number of words from 1 to 100000".to_owned())
}
