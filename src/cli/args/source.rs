//! Where cases come from, as it is typed.

use std::path::PathBuf;

use acem3_vision::Window;
use clap::builder::FalseyValueParser;
use clap::{Args, ValueEnum as _};

use super::DicomArgs;
use crate::data::cases::{Lang, SourceOptions, SourceSpec};

/// Where cases come from.
#[derive(Args, Clone, Debug)]
pub struct SourceArgs {
    /// A folder, a JSONL file, or a data set (VQA-RAD, SLAKE, Path-VQA) as it was released
    pub path: PathBuf,
    /// Answers of a model, or a folder of such files: JSONL with `question_id`, `text` and
    /// `model_id` on each line (repeatable)
    #[arg(long, value_name = "FILE", env = "ACEM3_ANSWERS")]
    pub answers: Vec<PathBuf>,
    /// Which split to take where a folder holds several (train, validate, ...)
    #[arg(long, value_name = "NAME", env = "ACEM3_SPLIT")]
    pub split: Option<String>,
    /// The language of the questions to take from a data set that has several
    /// [default: en]
    #[arg(long, value_enum, env = "ACEM3_LANG")]
    pub lang: Option<Lang>,
    /// Judge the reference answer too, as one more model named `reference`
    #[arg(long, env = "ACEM3_WITH_REFERENCE", value_parser = FalseyValueParser::new())]
    pub with_reference: bool,
    /// How DICOM images are looked at.
    #[command(flatten)]
    pub view: DicomArgs,
}

impl SourceArgs {
    /// How to open the path; a case with fewer responses than this is a problem.
    pub fn options(&self, min_responses: usize) -> SourceOptions {
        SourceOptions {
            answers: self.answers.clone(),
            lang: self.lang.unwrap_or_default(),
            split: self.split.clone(),
            with_reference: self.with_reference,
            min_responses,
        }
    }

    /// The source with its options; a case with fewer responses than this is a problem.
    pub fn spec(&self, min_responses: usize) -> SourceSpec {
        SourceSpec {
            path: self.path.clone(),
            options: self.options(min_responses),
            view: self.view.view(),
        }
    }

    /// The same source as it is typed behind another command.
    pub fn typed(&self) -> String {
        let mut words = vec![quoted(&self.path.to_string_lossy())];
        let mut flag = |name: &str, value: &str| words.push(format!("{name} {}", quoted(value)));
        for path in &self.answers {
            flag("--answers", &path.to_string_lossy());
        }
        if let Some(split) = &self.split {
            flag("--split", split);
        }
        if let Some(lang) = self.lang.and_then(|lang| lang.to_possible_value()) {
            flag("--lang", lang.get_name());
        }
        if self.view.window != Window::File {
            flag("--window", &self.view.window.to_string());
        }
        if let Some(frame) = self.view.frame {
            flag("--frame", &frame.to_string());
        }
        if self.with_reference {
            words.push("--with-reference".to_owned());
        }
        words.join(" ")
    }
}

/// A word as a shell takes it.
fn quoted(word: &str) -> String {
    let plain = |c: char| c.is_alphanumeric() || "_./:=,@%+-".contains(c);
    if !word.is_empty() && word.chars().all(plain) {
        word.to_owned()
    } else {
        format!("'{}'", word.replace('\'', "'\\''"))
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser as _;

    use crate::cli::args::{Cli, Command};

    #[test]
    fn a_source_is_typed_again_as_it_was() {
        let typed = |line: &[&str]| {
            let words = [&["acem3", "judge"], line, &["--out", "o"]].concat();
            let Command::Judge(args) = Cli::try_parse_from(words).unwrap().command else {
                panic!("another command");
            };
            args.source.typed()
        };
        assert_eq!(typed(&["cases"]), "cases");
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
        assert_eq!(typed(&line), again);
    }
}
