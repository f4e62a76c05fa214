//! The form of judging, and the use of the reference answer.

use std::path::Path;
use std::sync::Arc;

use acem3_experts::prompt::{Form, Rubric};
use anyhow::{Context as _, Result, bail};
use clap::{Args, ValueEnum};

use super::source::SourceArgs;
use crate::data::cases::SourceOptions;
use crate::judging::run::pairs::ResponseSelection;
use crate::support::files::regular_file;

/// Arguments that select what a verdict is about.
#[derive(Args, Clone, Debug)]
pub struct FormArgs {
    /// Judge in this form
    #[arg(long, value_enum, default_value_t = FormArg::Pair, env = "ACEM3_FORM")]
    pub form: FormArg,
    /// Use the reference answers of the cases in this way; the form `correctness` always shows them
    /// [default: hide]
    #[arg(long, value_enum, env = "ACEM3_REFERENCE")]
    pub reference: Option<ReferenceUse>,
    /// Score the aspects and criteria of this rubric: `ace_m3`, `hdceval`, `automedeval`, or a TOML
    /// file [default: `ace_m3`]
    #[arg(long, value_name = "RUBRIC", env = "ACEM3_RUBRIC")]
    pub rubric: Option<String>,
}

impl FormArgs {
    /// Returns true if the judge sees the reference answer.
    pub fn shows_reference(&self) -> bool {
        self.form == FormArg::Correctness || self.reference == Some(ReferenceUse::Show)
    }

    /// Returns the flags whose values are not the defaults.
    pub fn changed_flags(&self) -> Vec<&'static str> {
        let flags = [
            (self.form != FormArg::Pair, "--form"),
            (self.reference.is_some_and(|value| value != ReferenceUse::Hide), "--reference"),
            (self.rubric.is_some(), "--rubric"),
        ];
        flags.into_iter().filter_map(|(is_changed, flag)| is_changed.then_some(flag)).collect()
    }

    /// Returns the options for opening cases that are judged in this form.
    pub fn source_options(&self, source: &SourceArgs) -> SourceOptions {
        let mut options = source.to_options(self.form.form().min_responses());
        options.with_reference |= self.reference == Some(ReferenceUse::Rival);
        options
    }

    /// Reads the rubric; `None` for that of ACE-M³.
    ///
    /// # Errors
    ///
    /// There is no such rubric, the file is none, or the form has no criteria.
    pub fn to_rubric(&self) -> Result<Option<Arc<Rubric>>> {
        let Some(name) = &self.rubric else {
            return Ok(None);
        };
        if self.form == FormArg::Correctness {
            bail!(
                "--rubric {name}: the form correctness has no criteria\n\
                 hint: omit --rubric, or use --form single with --reference show"
            );
        }
        read_rubric(name).map(Some)
    }

    /// Returns what is judged of each case. `baseline`: the model that all others are compared with.
    pub fn to_selection(&self, baseline: Option<String>) -> ResponseSelection {
        let shows_reference = self.shows_reference();
        ResponseSelection { form: self.form.form(), shows_reference, baseline }
    }
}

/// Reads the rubric that `--rubric` names.
///
/// # Errors
///
/// There is no such rubric, or the file is none.
pub fn read_rubric(name: &str) -> Result<Arc<Rubric>> {
    if let Some(built_in) = Rubric::by_key(name)? {
        return Ok(Arc::new(built_in));
    }
    let path = Path::new(name);
    if !path.exists() {
        bail!(
            "--rubric {name}: no such file and no built-in rubric, expected {} or a TOML file\n\
             hint: assets/guide/forms.md shows a rubric file",
            Rubric::built_in_keys()?.join(", ")
        );
    }
    let text = regular_file::read_to_string(path)
        .with_context(|| format!("--rubric {name}: the file cannot be read"))?;
    let rubric = Rubric::parse(&text).with_context(|| {
        format!("--rubric {name}: not a rubric\nhint: assets/guide/forms.md shows a rubric file")
    })?;
    Ok(Arc::new(rubric))
}

/// Form of judging.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum FormArg {
    /// Two responses together, in both presentation orders: which one is better, and how good are they?
    Pair,
    /// Each response alone: how good is it?
    Single,
    /// All responses of a case in one prompt, in each rotation: how good is each?
    List,
    /// Each response alone, next to the reference answer: is it correct?
    Correctness,
}

impl From<Form> for FormArg {
    fn from(form: Form) -> Self {
        match form {
            Form::Pair => Self::Pair,
            Form::Single => Self::Single,
            Form::List => Self::List,
            Form::Correctness => Self::Correctness,
        }
    }
}

impl FormArg {
    /// Returns the form.
    pub fn form(self) -> Form {
        match self {
            Self::Pair => Form::Pair,
            Self::Single => Form::Single,
            Self::List => Form::List,
            Self::Correctness => Form::Correctness,
        }
    }
}

/// Use of the reference answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum ReferenceUse {
    /// The judge does not see it.
    Hide,
    /// The judge sees it next to the responses.
    Show,
    /// It is judged as the response of a model named `reference`.
    Rival,
}
