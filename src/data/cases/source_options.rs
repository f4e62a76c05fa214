//! Options for reading a source of cases.

use std::path::PathBuf;

use acem3_vision::DicomView;
use serde::{Deserialize, Serialize};

use super::case::{Case, InputProblem};
use crate::data::imports::columns::column_roles::ColumnRoles;

/// A case, or a problem with an unreadable case, a response or a field.
pub type CaseResult = Result<Case, InputProblem>;

/// Options for reading a source.
#[derive(Clone, Debug)]
pub struct SourceOptions {
    /// Answers files in LLaVA's format, or folders of them.
    pub answers: Vec<PathBuf>,
    /// Language of the SLAKE questions to read.
    pub lang: Lang,
    /// Split to read from a folder.
    pub split: Option<String>,
    /// True to add the reference as the response of a model named `reference`. It has no labels.
    pub with_reference: bool,
    /// Minimum number of responses per case; two make a pair.
    pub min_responses: usize,
    /// Columns of a table by role; `None` for known layouts and guessed columns.
    pub columns: Option<ColumnRoles>,
    /// Folder of images with relative paths in imported files.
    pub images: Option<PathBuf>,
    /// True to read questions only: no answers files, also none in the folder `answers/`.
    pub ignores_answers: bool,
}

impl Default for SourceOptions {
    fn default() -> Self {
        Self {
            answers: Vec::new(),
            lang: Lang::default(),
            split: None,
            with_reference: false,
            min_responses: 2,
            columns: None,
            images: None,
            ignores_answers: false,
        }
    }
}

/// A source with its options.
#[derive(Clone, Debug)]
pub struct SourceSpec {
    /// A file or folder of cases, or a released data set.
    pub path: PathBuf,
    /// Options for reading it.
    pub options: SourceOptions,
    /// Frame and window of DICOM images.
    pub dicom_view: DicomView,
}

/// Languages of questions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, clap::ValueEnum)]
#[serde(rename_all = "snake_case")]
pub enum Lang {
    /// English.
    #[default]
    En,
    /// Chinese.
    Zh,
    /// Both.
    All,
}

impl Lang {
    /// Returns true if questions with this language code are selected.
    pub(super) fn includes(self, code: &str) -> bool {
        match self {
            Self::En => code == "en",
            Self::Zh => code == "zh",
            Self::All => true,
        }
    }
}

/// The layout of a source.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SourceKind {
    /// JSONL of cases, alone or in a folder.
    Cases,
    /// A table of questions.
    Questions,
    /// VQA-RAD as released.
    VqaRad,
    /// SLAKE as released.
    Slake,
    /// Parquet files of the Hugging Face Hub.
    Parquet,
    /// Files of another program, or a table with named or guessed columns.
    Import,
}
