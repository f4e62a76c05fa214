//! Images of a data set for imported cases without ids: the questions of both are the same, in the
//! same order.

use std::path::{Path, PathBuf};

use anyhow::{Result, bail};

use crate::data::cases::{Case, CaseSource, SourceOptions, open_questions};
use crate::support::text::{escape_control_chars, escape_start};

/// Number of characters of a question in messages.
const SHOWN_CHARS: usize = 80;

/// Questions of a data set, read in step with the imported cases.
pub struct QuestionImages {
    path: PathBuf,
    source: CaseSource,
    /// Position of the next question.
    position: u64,
}

impl QuestionImages {
    /// Opens a data set.
    ///
    /// # Errors
    /// As [`open_questions`].
    pub fn open(path: &Path, options: &SourceOptions) -> Result<Self> {
        let options = SourceOptions {
            min_responses: 0,
            answers: Vec::new(),
            columns: None,
            ..options.clone()
        };
        Ok(Self { path: path.to_owned(), source: open_questions(path, &options)?, position: 0 })
    }

    /// Adds the image and the missing fields of the question at the position that is the id of a
    /// case.
    ///
    /// # Errors
    /// The id does not end in a position after the previous one, or the question differs.
    pub fn complete(&mut self, case: &mut Case) -> Result<()> {
        let path = self.path.display();
        // Samples of a task have ids such as `slake-7`.
        let number = case.id.rsplit('-').next().unwrap_or_default();
        let position: u64 = match number.parse() {
            Ok(position) if position >= self.position => position,
            _ => bail!(
                "--questions {path}: the imported case {} has no position after the one before\n\
                 hint: --questions is for files whose rows are numbered like the data set",
                escape_control_chars(&case.id)
            ),
        };
        for entry in self.source.by_ref() {
            if entry.as_ref().is_err_and(|problem| !problem.affects_whole_case()) {
                continue;
            }
            self.position += 1;
            if self.position <= position {
                continue;
            }
            let Ok(question) = entry else {
                return Ok(());
            };
            if !is_same(&question.question, &case.question) {
                bail!(
                    "--questions {path}: question {} is `{}`, the imported one is `{}`\n\
                     hint: both must have the same questions in the same order; check --split and --lang",
                    self.position,
                    shown(&question.question),
                    shown(&case.question)
                );
            }
            case.id = question.id;
            case.image = case.image.take().or(question.image);
            case.reference = case.reference.take().or(question.reference);
            for (name, value) in question.meta {
                case.meta.entry(name).or_insert(value);
            }
            return Ok(());
        }
        bail!(
            "--questions {path}: {} questions, the import has more\n\
             hint: both must have the same questions in the same order; check --split and --lang",
            self.position
        )
    }
}

/// Returns true for questions that are equal except for blanks, or that the imported one contains
/// with instructions around it.
fn is_same(question: &str, imported: &str) -> bool {
    let plain = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ").to_lowercase();
    plain(imported).contains(&plain(question))
}

fn shown(question: &str) -> String {
    escape_start(question, SHOWN_CHARS)
}
