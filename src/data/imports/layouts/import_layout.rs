//! The layouts of imported files.

use std::path::Path;

use super::row_context::RowContext;
use super::{batch, helm, llava, lm_eval, lmms_eval, med_eval, table, vlm_eval};
use crate::data::imports::columns::column_roles::ColumnRoles;
use crate::data::imports::folders::{folder_above, folder_names};
use crate::data::imports::imported_row::ImportedRow;
use crate::data::imports::rows::table_row::TableRow;

/// The layout of an imported file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum ImportLayout {
    /// Samples of lm-evaluation-harness.
    LmEval,
    /// Samples of lmms-eval.
    LmmsEval,
    /// Requests to OpenAI's batch API.
    BatchInput,
    /// Its responses.
    BatchOutput,
    /// Predictions of VLMEvalKit.
    VlmEval,
    /// A data set of VLMEvalKit: questions and images without predictions.
    VlmQuestions,
    /// Results of MedEvalKit.
    MedEval,
    /// Scenario state of HELM.
    Helm,
    /// Questions in LLaVA's format.
    LlavaQuestions,
    /// Answers in LLaVA's format.
    LlavaAnswers,
    /// A table with named or guessed columns.
    Table(ColumnRoles),
}

impl ImportLayout {
    /// Recognises the layout of another program from a row.
    pub(crate) fn recognise(row: &TableRow) -> Option<Self> {
        let has = |names: &[&str]| names.iter().all(|name| row.fields.contains_key(*name));
        if has(&["doc_id", "doc", "arguments", "filtered_resps"]) {
            Some(Self::LmEval)
        } else if has(&["doc_id", "input", "filtered_resps"]) {
            Some(Self::LmmsEval)
        } else if has(&["custom_id", "body"]) {
            Some(Self::BatchInput)
        } else if has(&["custom_id", "response"]) {
            Some(Self::BatchOutput)
        } else if has(&["instance", "request"]) {
            Some(Self::Helm)
        } else if has(&["index", "question", "prediction"]) {
            // A file with verdicts of VLMEvalKit's judge repeats the predictions.
            (!has(&["hit"]) && !has(&["log"])).then_some(Self::VlmEval)
        } else if has(&["question", "answer", "response", "correct"]) {
            Some(Self::MedEval)
        } else if has(&["question_id", "text", "image"]) {
            Some(Self::LlavaQuestions)
        } else if has(&["question_id", "text"]) {
            Some(Self::LlavaAnswers)
        } else {
            None
        }
    }

    /// Returns the name of the program or format, for messages.
    pub(crate) fn name(&self) -> &'static str {
        match self {
            Self::LmEval => "lm-evaluation-harness samples",
            Self::LmmsEval => "lmms-eval samples",
            Self::BatchInput => "OpenAI batch input",
            Self::BatchOutput => "OpenAI batch output",
            Self::VlmEval => "VLMEvalKit predictions",
            Self::VlmQuestions => "VLMEvalKit data set",
            Self::MedEval => "MedEvalKit results",
            Self::Helm => "HELM scenario state",
            Self::LlavaQuestions => "LLaVA questions",
            Self::LlavaAnswers => "LLaVA answers",
            Self::Table(_) => "table",
        }
    }

    /// Returns true if a row of this layout can hold an image.
    pub(crate) fn has_images(&self) -> bool {
        match self {
            Self::MedEval | Self::BatchOutput | Self::LlavaAnswers => false,
            Self::Table(roles) => roles.image.is_some(),
            _ => true,
        }
    }

    /// Returns true if the files of a model lie in a folder with its name.
    pub(crate) fn is_named_by_folder(&self) -> bool {
        matches!(self, Self::LmEval | Self::LmmsEval | Self::MedEval)
    }

    /// Returns the data set in the name of a file.
    pub(crate) fn task(&self, path: &Path) -> Option<String> {
        let stem = path.file_stem()?.to_string_lossy().into_owned();
        match self {
            Self::LmEval => lm_eval::task_of(&stem),
            Self::LmmsEval => lmms_eval::task_of(&stem),
            Self::VlmEval => Some(vlm_eval::split_stem(&stem, &folder_names(path)).1),
            _ => None,
        }
    }

    /// Returns the model in the name of a file.
    pub(crate) fn model(&self, path: &Path) -> Option<String> {
        let stem = path.file_stem()?.to_string_lossy().into_owned();
        match self {
            Self::VlmEval => Some(vlm_eval::split_stem(&stem, &folder_names(path)).0),
            layout if layout.is_named_by_folder() => folder_above(path, 1),
            _ => Some(stem),
        }
    }

    /// Reads a row; `None` if it is to be left out, such as a repetition.
    ///
    /// # Errors
    /// A field that the layout needs is missing.
    pub(crate) fn read_row(
        &self,
        row: &TableRow,
        context: &mut RowContext,
    ) -> Result<Option<ImportedRow>, String> {
        match self {
            Self::LmEval => lm_eval::read_row(row, context),
            Self::LmmsEval => lmms_eval::read_row(row, context).map(Some),
            Self::BatchInput => batch::read_input(row, context).map(Some),
            Self::BatchOutput => batch::read_output(row).map(Some),
            Self::VlmEval => vlm_eval::read_row(row, context).map(Some),
            Self::VlmQuestions => {
                let row = vlm_eval::read_row(row, context)?;
                Ok(Some(ImportedRow { answers: Vec::new(), ..row }))
            }
            Self::MedEval => med_eval::read_row(row).map(Some),
            Self::Helm => helm::read_row(row, context),
            Self::LlavaQuestions => llava::read_question(row, context).map(Some),
            Self::LlavaAnswers => llava::read_answer(row).map(Some),
            Self::Table(roles) => table::read_row(row, roles, context).map(Some),
        }
    }
}
