//! Reasons why cells of a table have no value.

/// Reasons in order of first occurrence, each with its subjects.
#[derive(Clone, Debug, Default)]
pub struct Reasons(Vec<(String, Vec<String>)>);

impl Reasons {
    /// Adds a subject without a value and the reason.
    pub fn add(&mut self, subject: impl Into<String>, reason: impl Into<String>) {
        let (subject, reason) = (subject.into(), reason.into());
        match self.0.iter_mut().find(|(known, _)| *known == reason) {
            Some((_, subjects)) => subjects.push(subject),
            None => self.0.push((reason, vec![subject])),
        }
    }

    /// Returns a note for each reason: `undefined: kappa, Spearman (fewer than two cases)`.
    pub fn undefined_notes(self) -> Vec<String> {
        self.notes("undefined")
    }

    /// Returns a note for each reason, starting with `prefix`.
    pub fn notes(self, prefix: &str) -> Vec<String> {
        let note = |(reason, subjects): (String, Vec<String>)| {
            format!("{prefix}: {} ({reason})", subjects.join(", "))
        };
        self.0.into_iter().map(note).collect()
    }

    /// Returns the reasons with their subjects.
    pub fn into_groups(self) -> Vec<(String, Vec<String>)> {
        self.0
    }
}

impl<S: Into<String>, R: Into<String>> FromIterator<(S, R)> for Reasons {
    fn from_iter<I: IntoIterator<Item = (S, R)>>(items: I) -> Self {
        let mut reasons = Self::default();
        for (subject, reason) in items {
            reasons.add(subject, reason);
        }
        reasons
    }
}
