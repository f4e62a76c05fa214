//! The form of judging, and the use of the reference answer.

use acem3_experts::prompt::Form;
use clap::{Args, ValueEnum};

use super::source::SourceArgs;
use crate::data::cases::SourceOptions;
use crate::judging::run::pairs::ResponseSelection;

/// Arguments that select what a verdict is about.
#[derive(Args, Clone, Copy, Debug)]
pub struct FormArgs {
    /// Judge in this form
    #[arg(long, value_enum, default_value_t = FormArg::Pair, env = "ACEM3_FORM")]
    pub form: FormArg,
    /// Use the reference answers of the cases in this way; the form `correctness` always shows them
    #[arg(long, value_enum, default_value_t = ReferenceUse::Hide, env = "ACEM3_REFERENCE")]
    pub reference: ReferenceUse,
}

impl FormArgs {
    /// Returns true if the judge sees the reference answer.
    pub fn shows_reference(self) -> bool {
        self.form == FormArg::Correctness || self.reference == ReferenceUse::Show
    }

    /// Returns the options for opening cases that are judged in this form.
    pub fn source_options(self, source: &SourceArgs) -> SourceOptions {
        let mut options = source.to_options(self.form.form().responses());
        options.with_reference |= self.reference == ReferenceUse::Rival;
        options
    }

    /// Returns what is judged of each case. `baseline`: the model that all others are compared with.
    pub fn to_selection(self, baseline: Option<String>) -> ResponseSelection {
        let shows_reference = self.shows_reference();
        ResponseSelection { form: self.form.form(), shows_reference, baseline }
    }
}

/// Form of judging.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum FormArg {
    /// Two responses together, in both presentation orders: which one is better, and how good are they?
    Pair,
    /// Each response alone: how good is it?
    Single,
    /// Each response alone, next to the reference answer: is it correct?
    Correctness,
}

impl FormArg {
    /// Returns the form.
    pub fn form(self) -> Form {
        match self {
            Self::Pair => Form::Pair,
            Self::Single => Form::Single,
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
