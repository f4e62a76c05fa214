//! The preferences of a stage with what its frozen part makes of them: every epoch and every member only reads it.

use std::ops::Range;
use std::path::Path;

use acem3_experts::train::{Parameters, Sequence};
use anyhow::{Result, bail};

use crate::training::config::preference_source::{PreferenceSource, enough};
use crate::training::config::stage_config::StageConfig;
use crate::training::preferences::preference_sequence::PreferenceSequence;
use crate::training::stages::frozen_cache::{CHUNK, FrozenCache, FrozenCacheWriter, rows_file};
use crate::training::stages::task::{StageContext, drawn, fits};

/// One preference: a case, and the two branches of its sequence.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CachedPair {
    case: usize,
    branches: [u16; 2],
}

/// The preferences of a stage.
pub(crate) struct PreferenceCache {
    kept: FrozenCache,
    /// Who learns from each case.
    members: Vec<Vec<usize>>,
    /// How many of the cases are trained on; the others validate.
    trained: usize,
}

impl PreferenceCache {
    /// Draws the preferences of a stage, and computes what its frozen part makes of them where that
    /// is not done yet. None when the person asked to stop.
    pub(crate) fn prepare(
        lectern: StageContext,
        start: &Parameters,
        out: &Path,
    ) -> Result<Option<Self>> {
        let StageContext {
            config,
            settings,
            live,
            ..
        } = lectern;
        let Some(preferences) = &settings.preferences else {
            bail!("stage {}: it has no preferences", settings.name);
        };
        let file = (rows_file(out, &settings.name), preferences.store);
        let vb = lectern.placed(start)?.builder();
        let mut keeper = FrozenCacheWriter::begin(lectern, &vb, file)?;
        let (mut members, mut trained) = (Vec::new(), 0);
        let source = PreferenceSource::open(lectern)?;
        let (learned, held) = source.numbers();
        for chunk in chunks(learned.clone()).chain(chunks(held)) {
            if live.interrupted() {
                return Ok(None);
            }
            let training = chunk.start < learned.end;
            if keeper.computes() && training {
                let state = format!(
                    "the frozen part is computed, {} of {} cases",
                    chunk.start, learned.end
                );
                live.report(&settings.name, 0, &state);
            }
            let context = config.model.decoder.max_position_embeddings;
            let cases = drawn(chunk, |number| source.contrasts(number))?;
            let cases = cases.into_iter().flatten();
            let fitting = cases.filter(|case| fits(&case.sequence, context, live));
            let (sequences, learning): (Vec<_>, Vec<_>) =
                fitting.map(|case| (case.sequence, case.members)).unzip();
            keeper.add(sequences)?;
            members.extend(learning);
            if training {
                trained = members.len();
            }
        }
        let stored = Self {
            kept: keeper.finish()?,
            members,
            trained,
        };
        stored.check(settings)?;
        Ok(Some(stored))
    }

    /// What fits into the context must be enough for every member.
    fn check(&self, settings: &StageConfig) -> Result<()> {
        for member in settings.member_places() {
            let (learned, held) = self.places(Some(member));
            enough(settings, member, learned.len(), held.len())?;
        }
        Ok(())
    }

    /// Layers of the decoder that the frozen part has.
    pub(crate) fn depth(&self) -> usize {
        self.kept.depth()
    }

    /// The preferences of a member, or of all: those to learn, and those that validate.
    pub(crate) fn places(&self, member: Option<usize>) -> (Vec<CachedPair>, Vec<CachedPair>) {
        let of = |cases: Range<usize>| {
            let cases = cases.flat_map(|case| {
                let members = self.members[case].iter().enumerate();
                let wanted = members.filter(move |(_, m)| member.is_none_or(|only| only == **m));
                wanted.map(move |(i, _)| CachedPair {
                    case,
                    branches: PreferenceSequence::branches(i),
                })
            });
            cases.collect()
        };
        (of(0..self.trained), of(self.trained..self.members.len()))
    }

    /// The sequence of a preference: branch 1 is preferred, branch 2 rejected.
    pub(crate) fn sequence(&self, place: CachedPair) -> Result<Sequence> {
        self.kept.part(place.case, &place.branches)
    }
}

fn chunks(cases: Range<u64>) -> impl Iterator<Item = Range<u64>> {
    let starts = cases.clone().step_by(CHUNK as usize);
    starts.map(move |at| at..(at + CHUNK).min(cases.end))
}
