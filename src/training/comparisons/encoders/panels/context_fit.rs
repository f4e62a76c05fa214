//! Whether the image tokens of an encoder fit into the context of the base, before any training.

use acem3_conclusion::MergePrompts;
use acem3_experts::Aspect;
use acem3_experts::prompt::{
    BranchPrompts, EvaluationFormat, JudgeInput, Rubric, StagedPrompt, TokenStep,
};
use acem3_projector::ProjectorKind;
use anyhow::Result;
use serde::Serialize;

use super::base_panel::BasePanel;
use crate::training::measurement::test_pair::TestPair;

/// Sides of the squares of patches that a pixel shuffle may join.
const FACTORS: std::ops::RangeInclusive<usize> = 2..=8;

/// Sides of the squares of tokens that a pooling may leave, largest first.
const POOLED_SIDES: [usize; 5] = [16, 12, 8, 6, 4];

/// Fit of the prompts of held-out pairs into a context.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct ContextFit {
    /// Image tokens of the encoder after the projector.
    pub image_tokens: usize,
    /// Context of the base in tokens.
    pub context: usize,
    /// Tokens that the shortest pair needs with the image.
    pub shortest: usize,
    /// Tokens that the longest pair needs with the image.
    pub longest: usize,
    /// Context that holds every pair whatever the members write.
    pub sufficient: usize,
    /// Pairs that are longer than the context.
    pub too_long: usize,
    /// All pairs.
    pub pairs: usize,
}

impl ContextFit {
    /// Returns true if at least one pair fits.
    pub fn fits_any(&self) -> bool {
        self.too_long < self.pairs
    }

    /// Describes pairs that do not fit, with a hint: which base or option would do. `None` if all
    /// pairs fit. `grid`: side of the square of patches of the encoder.
    pub(super) fn warning(&self, encoder: &str, grid: usize) -> Option<String> {
        let class_token = self.image_tokens == grid * grid + 1;
        if self.too_long == 0 {
            return None;
        }
        let part = if self.fits_any() {
            format!("{} of {} held-out pairs", self.too_long, self.pairs)
        } else {
            format!("all {} held-out pairs", self.pairs)
        };
        let base_size = self.sufficient.next_multiple_of(256);
        let mut options = vec![format!(
            "a base with a context of at least {} tokens, which hold analyses of any length (--panel; LLaVA 1.5 has \
             4096)",
            self.sufficient
        )];
        let text = self.longest - self.image_tokens;
        let fitting = FACTORS.into_iter().find(|factor| {
            let kind = ProjectorKind::PixelShuffle { factor: *factor };
            grid.is_multiple_of(*factor) && text + kind.token_count(grid * grid) <= self.context
        });
        if let Some(factor) = fitting {
            let tokens = (grid / factor) * (grid / factor);
            let without = if class_token { " without --class-token" } else { "" };
            options.push(format!(
                "--projector pixel_shuffle:{factor}{without} ({tokens} image tokens)"
            ));
        }
        let fits = |side: &usize| side * side < grid * grid && text + side * side <= self.context;
        if let (None, Some(side)) = (fitting, POOLED_SIDES.into_iter().find(fits)) {
            options.push(format!("--projector pooled:{side} ({} image tokens)", side * side));
        }
        options.push(format!(
            "--context {base_size}, which lets this base read positions that it was not trained on"
        ));
        Some(format!(
            "{encoder}: {} image tokens do not fit: {part} need more than the base's context of {} tokens (up to {}) \
             and will be unscored; training skips examples that are too long\n\
             hint: use {}",
            self.image_tokens,
            self.context,
            self.longest,
            options.join(", or ")
        ))
    }
}

/// Counts the tokens of the members' prompts and evaluations, without images.
pub(super) struct PromptLengths {
    /// Tokens of the longest member's prompt and evaluation of each pair, without the image.
    text_tokens: Vec<usize>,
    /// Tokens that the longest pair needs if every analysis has its full length, without the image.
    sufficient: usize,
}

impl PromptLengths {
    /// Measures the prompts of all pairs. The conclusion model also reads the analyses, whose
    /// length is known only after judging; here they are empty.
    ///
    /// # Errors
    /// If a prompt cannot be built.
    pub(super) fn measure(base: &BasePanel, pairs: &[TestPair]) -> Result<Self> {
        let config = &base.prompt_config;
        let template = &base.chat_template;
        let branches = BranchPrompts::new(config.layout, Rubric::built_in()?, config.rubric)?
            .with_chat_template(template.clone());
        let merge = MergePrompts::new(config.layout)?.with_chat_template(template.clone());
        let formats = Aspect::ALL.map(EvaluationFormat::for_aspect);
        let prefixes = base.completion_prefixes();
        let bound = |format: &EvaluationFormat, prefix: &str| -> Result<usize> {
            let format = format.clone().with_prefix(prefix).with_prefix(&template.lead);
            let steps = format.tokenize(&base.tokenizer)?;
            let tokens = steps.iter().map(|step| match step {
                TokenStep::Literal(tokens) => tokens.len(),
                TokenStep::FreeText => config.analysis_tokens + 1,
                TokenStep::Score(_) => 1,
            });
            Ok(tokens.sum())
        };
        let bounds = formats.iter().zip(&prefixes).map(|(format, prefix)| bound(format, prefix));
        let bounds: Vec<usize> = bounds.collect::<Result<_>>()?;
        let conclusion_bound = bound(&EvaluationFormat::for_conclusion(), &prefixes[3])?;
        let evaluations: Vec<_> = formats.iter().map(|f| f.render_pieces(&[])).collect();
        let mut sufficient = 0;
        let text_tokens = pairs.iter().map(|pair| {
            let [a, b] = pair.responses.each_ref().map(String::as_str);
            let input = JudgeInput::pair(true, &pair.question, [a, b]);
            let mut longest = 0;
            for (aspect, bound) in Aspect::ALL.into_iter().zip(&bounds) {
                let pieces = branches.pieces(aspect, &input)?;
                let prompt = StagedPrompt::new(&pieces, input.text_count(), &base.tokenizer)?;
                longest = longest.max(prompt.token_count(0) + bound);
            }
            let pieces = merge.pieces(&input, &evaluations)?;
            let prompt = StagedPrompt::new(&pieces, input.text_count(), &base.tokenizer)?;
            let conclusion = prompt.token_count(0) + conclusion_bound;
            longest = longest.max(conclusion);
            sufficient = sufficient.max(longest).max(conclusion + bounds.iter().sum::<usize>());
            Ok(longest)
        });
        let text_tokens = text_tokens.collect::<Result<_>>()?;
        Ok(Self { text_tokens, sufficient })
    }

    /// Returns the fit of all pairs with this number of image tokens.
    pub(super) fn fit(&self, image_tokens: usize, context: usize) -> ContextFit {
        let needed = || self.text_tokens.iter().map(|text| text + image_tokens);
        ContextFit {
            image_tokens,
            context,
            shortest: needed().min().unwrap_or(image_tokens),
            longest: needed().max().unwrap_or(image_tokens),
            sufficient: self.sufficient + image_tokens,
            too_long: needed().filter(|tokens| *tokens > context).count(),
            pairs: self.text_tokens.len(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pairs_that_do_not_fit_are_counted_with_a_hint() {
        let lengths = PromptLengths { text_tokens: vec![400, 500, 800], sufficient: 900 };
        assert_eq!(lengths.fit(100, 1024).warning("a", 10), None);
        let some = lengths.fit(576, 1024);
        assert_eq!((some.too_long, some.shortest, some.longest), (2, 976, 1376));
        assert!(some.fits_any());
        let warning = some.warning("tower", 24).unwrap();
        for part in [
            "tower: 576 image tokens",
            "2 of 3 held-out pairs",
            "pixel_shuffle:2 (144",
            "--context 1536",
        ] {
            assert!(warning.contains(part), "{part}: {warning}");
        }
        let none = lengths.fit(1369, 1024);
        assert!(!none.fits_any());
        let warning = none.warning("tower", 37).unwrap();
        assert!(
            warning.contains("all 3 held-out pairs") && !warning.contains("pixel"),
            "{warning}"
        );
    }
}
