//! Source of a stage's preference pairs: the example sampler or a file.

use std::ops::Range;
use std::path::Path;

use acem3_experts::prompt::PromptPiece;
use anyhow::{Context, Result, bail};

use crate::training::config::stage::negative::Negative;
use crate::training::config::stage::stage_config::StageConfig;
use crate::training::config::validation_indices::{VALIDATION_EXAMPLES, VALIDATION_START};
use crate::training::examples::validation_split::SplitItems;
use crate::training::preferences::files::file_sequences::FileSequenceBuilder;
use crate::training::preferences::negatives::EvaluationRatings;
use crate::training::preferences::own_evaluations::{OwnEvaluations, exchange_responses};
use crate::training::preferences::preference_sequence::{
    PreferenceSequence, PreferenceSequenceBuilder,
};
use crate::training::preferences::{
    EvaluationContent, PreferencePair, check_image_for, check_member, derive_any_negative,
    read_preferences, select_negatives,
};
use crate::training::stages::context::StageContext;

/// Source of a stage's preference pairs.
pub(crate) struct PreferenceSource<'a> {
    context: StageContext<'a>,
    pairs: PairSource<'a>,
    /// Evaluations of the panel before the stage, if they are rejected.
    own: Option<OwnEvaluations>,
}

/// Preference sequences of an example.
pub(crate) struct ExampleSequences {
    /// The sequences. With both presentation orders, those of the second order come last and correspond
    /// to the others in order.
    pub(crate) sequences: Vec<PreferenceSequence>,
    /// True if the sequences are those of both presentation orders.
    pub(crate) has_both_orders: bool,
}

/// Type of source.
enum PairSource<'a> {
    /// Sampled cases.
    Sampler(PreferenceSequenceBuilder<'a>),
    /// Lines of a file.
    File { path: &'a Path, split: SplitItems<PreferencePair> },
}

/// Indices of preference examples.
pub(crate) struct IndexRanges {
    /// Training examples.
    pub(crate) training: Range<u64>,
    /// Validation split.
    pub(crate) validation: Range<u64>,
}

/// Numbers of preference pairs of a member.
pub(crate) struct PairCounts {
    /// Training pairs.
    pub(crate) training: usize,
    /// Validation split.
    pub(crate) validation: usize,
}

impl<'a> PreferenceSource<'a> {
    /// Opens the source that the stage's configuration selects.
    pub(crate) fn open(context: StageContext<'a>) -> Result<Self> {
        Self::with_own(context, None)
    }

    /// Opens the source, which rejects evaluations of the panel before the stage, if any.
    pub(crate) fn with_own(context: StageContext<'a>, own: Option<OwnEvaluations>) -> Result<Self> {
        let preferences = context.stage.preferences.as_ref();
        let pairs = match preferences.and_then(|p| p.file.as_ref()) {
            Some(path) => {
                let pairs = read_preferences(path)?.items;
                let names = context.stage.member_names;
                for pair in &pairs {
                    check_member(names, pair.member.as_deref())
                        .with_context(|| location(path, pair))?;
                }
                let negatives = preferences.map_or(&Negative::ALL[..], |p| &p.negatives);
                let pairs = select_negatives(pairs, negatives)
                    .with_context(|| path.display().to_string())?;
                let member = |pair: &PreferencePair| names.index(pair.member.as_deref()?).ok();
                PairSource::File { path, split: SplitItems::by_group(pairs, member) }
            }
            None => PairSource::Sampler(PreferenceSequenceBuilder::new(
                context.builder,
                context.stage.kind.reward_token_role(),
                &context.config.reward_tokens,
            )?),
        };
        Ok(Self { context, pairs, own })
    }

    /// Returns the indices of all examples.
    pub(crate) fn index_ranges(&self) -> IndexRanges {
        match &self.pairs {
            PairSource::Sampler(_) => {
                let preferences = self.context.stage.preferences.as_ref();
                IndexRanges {
                    training: 0..preferences.map_or(0, |p| p.cases),
                    validation: VALIDATION_START..VALIDATION_START + VALIDATION_EXAMPLES,
                }
            }
            PairSource::File { split, .. } => {
                let training_count = split.training_count as u64;
                IndexRanges {
                    training: 0..training_count,
                    validation: training_count..split.items.len() as u64,
                }
            }
        }
    }

    /// Returns the sequences of the example at an index. Sampled chosen evaluations contain no
    /// wrong findings.
    pub(crate) fn sequences(&self, index: u64) -> Result<ExampleSequences> {
        if let (PairSource::Sampler(sequence_builder), Some(own)) = (&self.pairs, &self.own) {
            return self.own_sequences(sequence_builder, own, index);
        }
        let sequences = self.plain_sequences(index)?;
        Ok(ExampleSequences { sequences, has_both_orders: false })
    }

    /// Returns the sequences of an example whose rejected evaluations are those of the panel, in both
    /// presentation orders.
    fn own_sequences(
        &self,
        sequence_builder: &PreferenceSequenceBuilder,
        own: &OwnEvaluations,
        index: u64,
    ) -> Result<ExampleSequences> {
        let StageContext { stage, sampler, .. } = self.context;
        let pair = sampler.preference_example(stage, index)?.pair;
        let mut sequences = Vec::new();
        for swapped in [false, true] {
            let shown = if swapped { pair.exchanged() } else { pair.clone() };
            let rejected = |member, ratings: &EvaluationRatings| {
                if swapped {
                    let [_, rejected] =
                        own.rejected(index, member, &exchange_responses(ratings))?;
                    return Some(exchange_responses(&rejected));
                }
                own.rejected(index, member, ratings).map(|[rejected, _]| rejected)
            };
            let members = stage.member_indices();
            sequences.extend(sequence_builder.build(&shown, &shown, &members, rejected)?);
        }
        Ok(ExampleSequences { sequences, has_both_orders: true })
    }

    /// Returns the sequences of an example whose rejected evaluations come from a file or are changed
    /// correct ones.
    fn plain_sequences(&self, index: u64) -> Result<Vec<PreferenceSequence>> {
        let StageContext { stage, sampler, .. } = self.context;
        match &self.pairs {
            PairSource::Sampler(sequence_builder) => {
                let mut example = sampler.preference_example(stage, index)?;
                let negatives = stage.preferences.iter().flat_map(|p| &p.negatives);
                let negatives: Vec<_> = negatives.copied().collect();
                sequence_builder.build(
                    &example.pair,
                    &example.conclusion_pair,
                    &stage.member_indices(),
                    |_, ratings| {
                        let content = EvaluationContent::of_pair(ratings);
                        let negative = derive_any_negative(&negatives, &content, &mut example.rng)?;
                        Some(negative.ratings)
                    },
                )
            }
            PairSource::File { path, split } => {
                let pair = split.items.get(index as usize);
                let pair = pair.with_context(|| format!("no preference pair {index}"))?;
                let sequence_builder = self.file_sequence_builder();
                let members = (stage.member_indices().into_iter())
                    .filter(|member| pair.is_for(stage.member_names.get(*member)));
                let members: Vec<usize> = members.collect();
                let sequences = sequence_builder.build_preferences(pair, &members);
                sequences.with_context(|| location(path, pair))
            }
        }
    }

    /// Returns the builder of the sequences of a file.
    fn file_sequence_builder(&self) -> FileSequenceBuilder<'_> {
        let StageContext { config, stage, sampler, builder, .. } = self.context;
        FileSequenceBuilder {
            tokenizer: builder.tokenizer(),
            images: sampler.images(),
            reward_token_role: stage.kind.reward_token_role(),
            reward_tokens: &config.reward_tokens,
            strips_reward_tokens: stage.strips_reward_tokens,
        }
    }

    /// Returns the prompt of the first pair of a file.
    pub(crate) fn first_prompt(&self) -> &[PromptPiece] {
        match &self.pairs {
            PairSource::File { split, .. } => split.items.first().map_or(&[], |pair| &pair.prompt),
            PairSource::Sampler(_) => &[],
        }
    }

    /// Checks a file before training: images exist, reward tokens match the stage's kind, and every
    /// member has enough pairs.
    pub(crate) fn check(&self) -> Result<()> {
        let PairSource::File { path, split } = &self.pairs else {
            return Ok(());
        };
        let stage = self.context.stage;
        let sequence_builder = self.file_sequence_builder();
        for pair in &split.items {
            check_image_for(&self.context.config.model, pair.image.as_deref())
                .and_then(|()| sequence_builder.check_reward_tokens(pair))
                .with_context(|| location(path, pair))?;
        }
        let (training, validation) = split.items.split_at(split.training_count);
        for member in stage.member_indices() {
            let count = |pairs: &[PreferencePair]| {
                let name = stage.member_names.get(member);
                let of_member = pairs.iter().filter(|pair| pair.is_for(name));
                of_member.count()
            };
            let counts = PairCounts { training: count(training), validation: count(validation) };
            counts.check(stage, member)?;
        }
        Ok(())
    }
}

impl PairCounts {
    /// Checks that a member has at least one pair for training and one for validation.
    pub(crate) fn check(&self, stage: &StageConfig, member: usize) -> Result<()> {
        if self.training > 0 && self.validation > 0 {
            return Ok(());
        }
        bail!(
            "stage {}: {} has {} preference pairs for training and {} for validation, expected at least one each\n\
             hint: raise `cases` or extend `file` in [stages.preferences], change `negatives`, or name other `members`",
            stage.name,
            stage.member_names.get(member),
            self.training,
            self.validation
        )
    }
}

/// Returns the file and line of a pair.
fn location(file: &Path, pair: &PreferencePair) -> String {
    format!("{}, line {}", file.display(), pair.line)
}
