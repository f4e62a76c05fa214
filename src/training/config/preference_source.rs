//! Where the preferences of a stage come from: drawn by the teacher, or read from a file.

use std::ops::Range;
use std::path::Path;

use acem3_experts::prompt::Piece;
use anyhow::{Context, Result, bail};

use super::stage_config::StageConfig;
use crate::checkpoints::panel::definition::MEMBERS;
use crate::training::config::validation_split::split;
use crate::training::preferences::data;
use crate::training::preferences::data::PreferencePair;
use crate::training::preferences::file_sequences::{FileSequenceBuilder, rewarded};
use crate::training::preferences::preference_sequence::{
    PreferenceSequence, PreferenceSequenceBuilder,
};
use crate::training::stages::stage::{VALIDATION, VALIDATION_AT};
use crate::training::stages::task::StageContext;

/// A source of preferences.
pub(crate) enum PreferenceSource<'a> {
    /// Drawn.
    Drawn(StageContext<'a>, PreferenceSequenceBuilder<'a>),
    /// Read: those that are learned, so many, and then those that validate.
    File(StageContext<'a>, &'a Path, (Vec<PreferencePair>, usize)),
}

impl<'a> PreferenceSource<'a> {
    /// The source that a stage names.
    pub(crate) fn open(lectern: StageContext<'a>) -> Result<Self> {
        let settings = lectern.settings;
        let file = settings.preferences.as_ref().and_then(|p| p.file.as_ref());
        if let Some(file) = file {
            let pairs = split(data::read(file)?.0);
            return Ok(Self::File(lectern, file, pairs));
        }
        let contrasts = PreferenceSequenceBuilder::new(lectern.scribe, settings.kind.reward())?;
        Ok(Self::Drawn(lectern, contrasts))
    }

    /// The numbers of what is learned, and of what validates.
    pub(crate) fn numbers(&self) -> (Range<u64>, Range<u64>) {
        match self {
            Self::Drawn(lectern, _) => {
                let cases = lectern.settings.preferences.as_ref().map_or(0, |p| p.cases);
                (0..cases, VALIDATION_AT..VALIDATION_AT + VALIDATION)
            }
            Self::File(_, _, (pairs, learned)) => {
                let learned = *learned as u64;
                (0..learned, learned..pairs.len() as u64)
            }
        }
    }

    /// What is to be preferred about the case of a number.
    pub(crate) fn contrasts(&self, number: u64) -> Result<Vec<PreferenceSequence>> {
        match self {
            Self::Drawn(lectern, contrasts) => {
                let StageContext {
                    teacher, settings, ..
                } = lectern;
                teacher.contrasts(contrasts, settings, number)
            }
            Self::File(lectern, file, (pairs, _)) => {
                let pair = pairs
                    .get(number as usize)
                    .context("there is no such pair")?;
                let writer = FileSequenceBuilder {
                    tokenizer: lectern.scribe.tokenizer(),
                    processor: &lectern.config.processor(),
                    image_tokens: lectern.scribe.image_tokens(),
                    reward: lectern.settings.kind.reward(),
                };
                let members = lectern.settings.member_places();
                let written = writer.contrasts(pair, &members);
                written.with_context(|| line(file, pair))
            }
        }
    }

    /// The prompt of the first pair of a file.
    pub(crate) fn prompt(&self) -> &[Piece] {
        match self {
            Self::File(_, _, (pairs, _)) => pairs.first().map_or(&[], |pair| &pair.prompt),
            Self::Drawn(..) => &[],
        }
    }

    /// Refuses a file of which a stage cannot learn, before anything is computed: images that are not there, reward
    /// tokens that its kind does not want or lacks, too few pairs of a member.
    pub(crate) fn check(&self) -> Result<()> {
        let Self::File(lectern, file, (pairs, _)) = self else {
            return Ok(());
        };
        let settings = lectern.settings;
        for pair in pairs {
            let image = data::there(pair.image.as_deref());
            let rewarded = image.and_then(|()| rewarded(pair, settings.kind.reward()));
            rewarded.with_context(|| line(file, pair))?;
        }
        let (learned, held) = self.numbers();
        for member in settings.member_places() {
            let of = |numbers: Range<u64>| {
                let pairs = &pairs[numbers.start as usize..numbers.end as usize];
                let own = pairs
                    .iter()
                    .filter(|p| p.member.is_none_or(|m| m == member));
                own.count()
            };
            enough(settings, member, of(learned.clone()), of(held.clone()))?;
        }
        Ok(())
    }
}

/// Where a pair stands.
fn line(file: &Path, pair: &PreferencePair) -> String {
    format!("{}, line {}", file.display(), pair.line)
}

/// Every member that learns must have something to learn from, and something to validate by.
pub(crate) fn enough(
    settings: &StageConfig,
    member: usize,
    learned: usize,
    held: usize,
) -> Result<()> {
    if learned > 0 && held > 0 {
        return Ok(());
    }
    bail!(
        "stage {}: {held} of {} preferences of {} validate, which leaves too few\n\
         hint: give more `cases` or a longer `file` in [stages.preferences], other \
         `negatives`, or name the members that learn in `members`",
        settings.name,
        learned + held,
        MEMBERS[member]
    )
}
