//! Tokenised formats for each number of responses that a form allows.

use std::sync::Arc;

use super::form::Form;
use super::format::TokenStep;
use crate::Error;

/// The tokenised formats of a member, by the number of responses in its prompt.
#[derive(Clone, Debug)]
pub struct FormatsByLength {
    /// Number of responses of the first format.
    shortest: usize,
    formats: Vec<Arc<[TokenStep]>>,
}

impl FormatsByLength {
    /// Tokenises the formats of a form. `tokenize`: creates the format for a number of responses.
    pub fn new(
        form: Form,
        tokenize: impl Fn(usize) -> Result<Vec<TokenStep>, Error>,
    ) -> Result<Self, Error> {
        let shortest = form.min_responses();
        let formats = (shortest..=form.max_responses()).map(|n| Ok(tokenize(n)?.into()));
        Ok(Self { shortest, formats: formats.collect::<Result<_, Error>>()? })
    }

    /// Returns the format for a number of responses.
    ///
    /// # Errors
    /// If the form does not allow it.
    pub fn get(&self, responses: usize) -> Result<Arc<[TokenStep]>, Error> {
        let format = responses.checked_sub(self.shortest).and_then(|i| self.formats.get(i));
        format.cloned().ok_or_else(|| {
            Error::Template(format!("a prompt with {responses} responses has no format"))
        })
    }
}
