//! The forms of judging that a panel was trained for.

use acem3_experts::prompt::Form;
use anyhow::{Result, bail};

/// The forms of judging that a panel was trained for, and whether its prompts show the reference answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TrainedForms {
    /// The forms.
    pub forms: Vec<Form>,
    /// True if the prompts show the reference answer. Those of the form [`Form::Correctness`] always do.
    pub shows_reference: bool,
}

impl Default for TrainedForms {
    fn default() -> Self {
        Self { forms: vec![Form::Pair], shows_reference: false }
    }
}

impl TrainedForms {
    /// Checks that the panel of this name can judge in a form.
    ///
    /// # Errors
    ///
    /// The panel was trained for others.
    pub(crate) fn check(&self, form: Form, shows_reference: bool, panel: &str) -> Result<()> {
        let names: Vec<&str> = self.forms.iter().map(|form| form.name()).collect();
        let known = self.forms.contains(&form);
        let same_reference = form == Form::Correctness || shows_reference == self.shows_reference;
        if known && same_reference {
            return Ok(());
        }
        let use_of_reference = |shown| if shown { "--reference show" } else { "--reference hide" };
        let asked = if known {
            use_of_reference(shows_reference).to_owned()
        } else {
            format!("--form {}", form.name())
        };
        let with = if self.shows_reference { "with" } else { "without" };
        let suggestion = if known {
            use_of_reference(self.shows_reference).to_owned()
        } else {
            format!("--form {}", names.first().copied().unwrap_or_default())
        };
        bail!(
            "{asked}: the panel {panel} was trained for the form {} {with} the reference answer; its other \
             verdicts would mean nothing\n\
             hint: judge with {suggestion}, or with a published model, such as --panel FOLDER of a LLaVA \
             checkpoint",
            names.join(", ")
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn other_forms_are_refused_with_the_trained_ones() {
        let trained = TrainedForms { forms: vec![Form::List], shows_reference: true };
        assert!(trained.check(Form::List, true, "p").is_ok());
        let error = |form, shown| trained.check(form, shown, "p").unwrap_err().to_string();
        assert!(error(Form::Pair, true).starts_with("--form pair: the panel p was trained for"));
        assert!(error(Form::Pair, true).contains("hint: judge with --form list"));
        assert!(error(Form::List, false).contains("hint: judge with --reference show"));
        let pairs = TrainedForms::default();
        assert!(pairs.check(Form::Pair, false, "p").is_ok());
        assert!(pairs.check(Form::Pair, true, "p").is_err());
        let correctness = TrainedForms { forms: vec![Form::Correctness], shows_reference: false };
        assert!(correctness.check(Form::Correctness, true, "p").is_ok());
    }
}
