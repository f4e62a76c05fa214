//! The source of cases.

use std::path::{Path, PathBuf};

use acem3_vision::DicomWindow;
use clap::{Args, ValueEnum as _};

use super::dicom::DicomArgs;
use crate::data::cases::{Lang, SourceOptions, SourceSpec};
use crate::data::imports::{ColumnEntry, ColumnRoles};
use crate::support::terminal::switch::parse_switch;
use crate::support::text::shell_word::quote_shell_word;

/// Help of [`SourceArgs::path`] for commands that also read the records of a run.
pub(crate) const RECORDS_OR_CASES: &str = "\
Folder that `judge --out` wrote, or its records.jsonl; or cases: a folder, a JSONL file, or a data \
set as released (VQA-RAD, SLAKE, Path-VQA)";

/// Arguments that select a source of cases.
#[derive(Args, Clone, Debug)]
pub struct SourceArgs {
    /// Cases: a folder, a JSONL file, a data set as released (VQA-RAD, SLAKE, Path-VQA), files of
    /// an evaluation harness, or a table with questions and answers
    pub path: PathBuf,
    /// Add the answers of a model: a JSONL file with `question_id`, `text` and `model_id` on each
    /// line, or a folder of such files (repeatable)
    #[arg(long, value_name = "FILE", env = "ACEM3_ANSWERS")]
    pub answers: Vec<PathBuf>,
    /// Read this split of the data set (train, validate, ...)
    #[arg(long, value_name = "NAME", env = "ACEM3_SPLIT")]
    pub split: Option<String>,
    /// Read only questions in this language [default: en]
    #[arg(long, value_enum, env = "ACEM3_LANG")]
    pub lang: Option<Lang>,
    /// Add the reference answer as the response of a model named `reference`
    #[arg(long, env = "ACEM3_WITH_REFERENCE", value_parser = parse_switch)]
    pub with_reference: bool,
    /// Read a table with these columns: `id=`, `image=`, `question=`, `reference=`, `model=`,
    /// `answer=` or `answer:MODEL=` and the name of a column, separated by commas
    #[arg(long, value_name = "ROLE=COLUMN", value_delimiter = ',', env = "ACEM3_COLUMNS")]
    pub columns: Vec<ColumnEntry>,
    /// Look in folder DIR for images that imported files name by relative paths
    #[arg(long, value_name = "DIR", env = "ACEM3_IMAGES")]
    pub images: Option<PathBuf>,
    /// Display settings of DICOM images.
    #[command(flatten)]
    pub dicom: DicomArgs,
}

impl SourceArgs {
    /// Returns the options for opening the path. A case with fewer than `min_responses` is a
    /// problem.
    pub fn to_options(&self, min_responses: usize) -> SourceOptions {
        SourceOptions {
            answers: self.answers.clone(),
            lang: self.lang.unwrap_or_default(),
            split: self.split.clone(),
            with_reference: self.with_reference,
            min_responses,
            columns: ColumnRoles::from_entries(&self.columns),
            images: self.images.clone(),
            ignores_answers: false,
        }
    }

    /// Returns the source with its options. A case with fewer than `min_responses` is a problem.
    pub fn to_spec(&self, min_responses: usize) -> SourceSpec {
        SourceSpec {
            path: self.path.clone(),
            options: self.to_options(min_responses),
            dicom_view: self.dicom.to_view(),
        }
    }

    /// Returns the paths that the user passed: the cases and the answers.
    pub fn files(&self) -> Vec<&Path> {
        std::iter::once(&self.path).chain(&self.answers).map(PathBuf::as_path).collect()
    }

    /// Returns the source arguments as shell words, for another command.
    pub fn to_shell_words(&self) -> String {
        let mut words = vec![quote_shell_word(&self.path.to_string_lossy())];
        let mut flag =
            |name: &str, value: &str| words.push(format!("{name} {}", quote_shell_word(value)));
        for path in &self.answers {
            flag("--answers", &path.to_string_lossy());
        }
        if let Some(split) = &self.split {
            flag("--split", split);
        }
        if let Some(lang) = self.lang.and_then(|lang| lang.to_possible_value()) {
            flag("--lang", lang.get_name());
        }
        if let Some(columns) = ColumnRoles::from_entries(&self.columns) {
            flag("--columns", &columns.to_string());
        }
        if let Some(images) = &self.images {
            flag("--images", &images.to_string_lossy());
        }
        if self.dicom.window != DicomWindow::File {
            flag("--window", &self.dicom.window.to_string());
        }
        if let Some(frame) = self.dicom.frame {
            flag("--frame", &frame.to_string());
        }
        if self.with_reference {
            words.push("--with-reference".to_owned());
        }
        words.join(" ")
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser as _;

    use crate::cli::args::{Cli, Command};

    #[test]
    fn shell_words_repeat_the_source() {
        let shell_words = |line: &[&str]| {
            let words = [&["acem3", "judge"], line, &["--out", "o"]].concat();
            let Command::Judge(args) = Cli::try_parse_from(words).unwrap().command else {
                panic!("another command");
            };
            args.source.to_shell_words()
        };
        assert_eq!(shell_words(&["cases"]), "cases");
        let line = [
            "it's mine",
            "--answers",
            "a.jsonl",
            "--answers",
            "my b.jsonl",
            "--split",
            "test",
            "--lang",
            "zh",
            "--window",
            "-600,1500",
            "--frame",
            "2",
            "--with-reference",
        ];
        let again = "'it'\\''s mine' --answers a.jsonl --answers 'my b.jsonl' --split test --lang zh \
                     --window -600,1500 --frame 2 --with-reference";
        assert_eq!(shell_words(&line), again);
    }
}
