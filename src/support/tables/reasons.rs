//! Reasons why cells of a table have no value.

/// Maximum number of names in a note.
const MAX_NAMES: usize = 8;

/// Reasons in order of first occurrence, each with the names of the missing values.
#[derive(Clone, Debug, Default)]
pub struct Reasons(Vec<(String, Vec<String>)>);

impl Reasons {
    /// Adds the name of a missing value and the reason.
    pub fn add(&mut self, name: impl Into<String>, reason: impl Into<String>) {
        let (name, reason) = (name.into(), reason.into());
        match self.0.iter_mut().find(|(known, _)| *known == reason) {
            Some((_, names)) => names.push(name),
            None => self.0.push((reason, vec![name])),
        }
    }

    /// Returns a note for each reason: `undefined: kappa, Spearman (fewer than two cases)`.
    pub fn undefined_notes(self) -> Vec<String> {
        self.notes("undefined")
    }

    /// Returns a note for each reason, starting with `prefix`. A note with many names lists the first
    /// ones and counts the others.
    pub fn notes(self, prefix: &str) -> Vec<String> {
        let note = |(reason, names): (String, Vec<String>)| {
            let (listed, others) = names.split_at(names.len().min(MAX_NAMES));
            let more = if others.is_empty() {
                String::new()
            } else {
                format!(" and {} more", others.len())
            };
            format!("{prefix}: {}{more} ({reason})", listed.join(", "))
        };
        self.0.into_iter().map(note).collect()
    }

    /// Returns the reasons, each with the names of the missing values.
    pub fn into_groups(self) -> Vec<(String, Vec<String>)> {
        self.0
    }
}

impl<S: Into<String>, R: Into<String>> FromIterator<(S, R)> for Reasons {
    fn from_iter<I: IntoIterator<Item = (S, R)>>(items: I) -> Self {
        let mut reasons = Self::default();
        for (name, reason) in items {
            reasons.add(name, reason);
        }
        reasons
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_lists_of_names_are_cut() {
        let notes = |names: &[&str]| {
            let reasons: Reasons = names.iter().map(|name| (*name, "one case")).collect();
            reasons.undefined_notes()
        };
        assert_eq!(notes(&["a", "b"]), ["undefined: a, b (one case)"]);
        assert_eq!(
            notes(&["a", "b", "c", "d", "e", "f", "g", "h", "i", "j"]),
            ["undefined: a, b, c, d, e, f, g, h and 2 more (one case)"]
        );
    }
}
