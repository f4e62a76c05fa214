//! Kinds of planted text.

use serde::{Deserialize, Serialize};

/// A kind of text that is planted in a response.
#[derive(
    Clone,
    Copy,
    Debug,
    PartialEq,
    Eq,
    Hash,
    PartialOrd,
    Ord,
    Serialize,
    Deserialize,
    clap::ValueEnum,
)]
#[serde(rename_all = "kebab-case")]
pub enum PlantedKind {
    /// Part of `planted`: unfamiliar strings
    #[value(name = "planted-junk")]
    Junk,
    /// Part of `planted`: words in brackets or markup
    #[value(name = "planted-markup")]
    Markup,
    /// Part of `planted`: JSON like a record of the judge
    #[value(name = "planted-json")]
    Json,
    /// Part of `planted`: headings of the judge's prompt
    #[value(name = "planted-headings")]
    Headings,
    /// Part of `planted`: scores, instructions and verdicts
    #[value(name = "planted-phrases")]
    Phrases,
    /// Part of `planted`: role markers of chat templates
    #[value(name = "planted-roles")]
    Roles,
    /// Part of `planted`: long neutral text and white space
    #[value(name = "planted-padding")]
    Padding,
}

impl PlantedKind {
    /// All kinds, in the order in which they are listed.
    pub const ALL: [Self; 7] = [
        Self::Junk,
        Self::Markup,
        Self::Json,
        Self::Headings,
        Self::Phrases,
        Self::Roles,
        Self::Padding,
    ];
}
