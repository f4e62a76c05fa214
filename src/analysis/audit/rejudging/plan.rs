//! The plan of an audit: every original pair and its perturbations.

use std::cmp::Ordering;
use std::collections::BTreeMap;

use rand::{Rng as _, SeedableRng as _};
use rand_chacha::ChaCha8Rng;

use super::audit_pair::AuditPair;
use super::other_cases::OtherCases;
use crate::analysis::audit::audit_request::AuditRequest;
use crate::analysis::audit::perturbations::{
    Edit, ImagePerturbation, PairSeed, Perturbation, PlantedAddition, ReferencePerturbation,
    append_sentence, insert_error, with_neutral_clause,
};
use crate::analysis::audit::probe::Probe;
use crate::data::cases::Case;

/// A pair to judge.
#[derive(Clone, Debug)]
pub struct AuditPass {
    /// Index of the pair.
    pub pair: usize,
    /// The perturbation; `None` for the original pair.
    pub perturbation: Option<Perturbation>,
    /// The two responses.
    pub responses: [String; 2],
    /// The image.
    pub image: ImagePerturbation,
    /// The reference, for a judge that sees it.
    pub reference: ReferencePerturbation,
    /// Index of the perturbed response; `None` if both or neither are perturbed.
    pub side: Option<usize>,
    /// Template and position of the planted text; `None` for other perturbations.
    pub variant: Option<String>,
}

/// All passes of an audit, and the pairs it skips.
#[derive(Clone, Debug, Default)]
pub struct AuditPlan {
    /// Passes in the order of the pairs; the original pair comes first.
    pub passes: Vec<AuditPass>,
    /// Number of responses without a word to replace, by medical error.
    pub not_applicable: BTreeMap<Perturbation, usize>,
    /// Number of skipped pairs or responses, by probe and reason.
    pub skipped: BTreeMap<(Probe, &'static str), usize>,
}

/// A pair to perturb.
struct PairContext<'a> {
    /// Index of the pair.
    index: usize,
    /// Seed of the audit.
    seed: u64,
    pair: &'a AuditPair,
    /// The original responses.
    texts: [String; 2],
    /// Index of the response that is judged next to itself or its rewritten form.
    sampled_side: usize,
    /// Random position of the perturbed response in the perturbed pair.
    side: usize,
    /// True if the previous pair belongs to the same case.
    repeats_case: bool,
    /// The case that the reference is exchanged with.
    other_reference_case: Option<&'a Case>,
    /// The case that the image is exchanged with.
    other_image_case: Option<&'a Case>,
}

/// Applicability of a probe to a pair.
enum Applicability {
    /// The probe can perturb the pair.
    Applies,
    /// The probe cannot perturb the pair, for this reason.
    Skipped(&'static str),
    /// An earlier pair has the same perturbations.
    Repeated,
}

impl AuditPlan {
    /// Plans every pair with the perturbations of the requested probes. `others` has the cases that
    /// the image and the reference of each pair are exchanged with.
    pub fn new(pairs: &[AuditPair], request: &AuditRequest, others: &[OtherCases]) -> Self {
        let seed = request.bootstrap.seed;
        let mut plan = Self::default();
        let mut random = ChaCha8Rng::seed_from_u64(seed);
        let mut last_case: Option<&str> = None;
        for (index, pair) in pairs.iter().enumerate() {
            let repeats_case = last_case.replace(&pair.case.id) == Some(&pair.case.id);
            // Sample for every pair, so that the choice of probes does not change the samples.
            let (sampled_side, side) = (random.random_range(0..2), random.random_range(0..2));
            let other = others.get(index);
            let context = PairContext {
                index,
                seed,
                pair,
                texts: pair.texts(),
                sampled_side,
                side,
                repeats_case,
                other_reference_case: other.and_then(|other| other.reference.as_deref()),
                other_image_case: other.and_then(|other| other.image.as_deref()),
            };
            plan.passes.push(context.original_pass(None));
            for probe in &request.probes {
                plan.add_probe(*probe, request, &context);
            }
        }
        plan
    }

    fn add_probe(&mut self, probe: Probe, request: &AuditRequest, context: &PairContext<'_>) {
        let is_neutral = probe == Probe::Neutral;
        if is_neutral && request.probes.contains(&Probe::Planted) {
            // The probe `planted` judges the same neutral texts.
            return;
        }
        match context.applicability(probe) {
            Applicability::Applies => {}
            Applicability::Skipped(reason) => return self.count_skipped(probe, reason),
            Applicability::Repeated => return,
        }
        let mut perturbations: Vec<_> = Perturbation::ALL.into();
        perturbations.retain(|p| p.is_judged_for(probe) && request.selects(*p));
        // Passes with the image of another case come last.
        perturbations.sort_by_key(|p| matches!(p.spec().edit, Edit::OtherImage));
        let first_new = self.passes.len();
        for perturbation in perturbations {
            let planned = self.passes.get(first_new..).unwrap_or_default();
            let is_control_of = |pass: &AuditPass| {
                pass.perturbation.and_then(Perturbation::control) == Some(perturbation)
            };
            if !is_neutral && !perturbation.is_treatment() && !planned.iter().any(is_control_of) {
                continue;
            }
            match (context.perturb(perturbation), perturbation.spec().edit) {
                (Some(pass), _) => self.passes.push(pass),
                (None, Edit::OtherImage) => {
                    self.count_skipped(probe, "pairs without another image to exchange");
                }
                (None, Edit::OtherReference) => {
                    self.count_skipped(probe, "pairs without another reference to exchange");
                }
                (None, _) => *self.not_applicable.entry(perturbation).or_default() += 1,
            }
        }
    }

    fn count_skipped(&mut self, probe: Probe, reason: &'static str) {
        *self.skipped.entry((probe, reason)).or_default() += 1;
    }
}

impl PairContext<'_> {
    /// Checks whether a probe can perturb the pair.
    fn applicability(&self, probe: Probe) -> Applicability {
        let is_list_entry = |line: &str| line.trim_start().starts_with(['-', '*', '•']);
        match probe {
            Probe::Formatting if self.texts[self.sampled_side].lines().any(is_list_entry) => {
                Applicability::Skipped("responses that are already lists")
            }
            Probe::Image if self.pair.case.image.is_none() => {
                Applicability::Skipped("pairs without an image")
            }
            Probe::Reference if self.pair.reference().is_none() => {
                Applicability::Skipped("pairs without a reference")
            }
            Probe::Errors if self.repeats_case && self.pair.case.reference.is_some() => {
                Applicability::Repeated
            }
            Probe::Errors if self.pair.correct_response().is_none() => {
                Applicability::Skipped("pairs without a correct response")
            }
            _ => Applicability::Applies,
        }
    }

    /// Applies a perturbation; `None` if the pair has no text or image for it.
    fn perturb(&self, perturbation: Perturbation) -> Option<AuditPass> {
        let pass = self.original_pass(Some(perturbation));
        let sampled = &self.texts[self.sampled_side];
        Some(match perturbation.spec().edit {
            Edit::Duplicate => AuditPass { responses: [sampled.clone(), sampled.clone()], ..pass },
            Edit::Rewrite(rewrite) => {
                self.pass_next_to_original(rewrite(sampled), sampled.clone(), pass)
            }
            Edit::Image(image) => AuditPass { image, ..pass },
            Edit::OtherImage => AuditPass {
                image: ImagePerturbation::OtherCase(self.other_image_case?.id.clone()),
                ..pass
            },
            Edit::OtherReference => {
                let other = self.other_reference_case?;
                let (case, text) = (other.id.clone(), other.reference.clone()?);
                AuditPass { reference: ReferencePerturbation::OtherCase { case, text }, ..pass }
            }
            Edit::NoReference => AuditPass { reference: ReferencePerturbation::Hidden, ..pass },
            Edit::RewriteReference(rewrite) => {
                let text = rewrite(self.pair.reference()?);
                AuditPass { reference: ReferencePerturbation::Reworded(text), ..pass }
            }
            Edit::Append(text) => self.plant(|response| append_sentence(response, text), pass),
            Edit::Plant(text) => {
                let pair =
                    PairSeed { seed: self.seed, pair: self.index, side: self.planted_side() };
                let addition: PlantedAddition = text.generate(pair);
                let pass = AuditPass { variant: Some(addition.variant.clone()), ..pass };
                self.plant(|response| addition.apply(response), pass)
            }
            Edit::Error(kind) => {
                let correct = self.pair.correct_response()?;
                let wrong = insert_error(kind, &correct, &self.pair.case.question)?;
                self.pass_next_to_original(wrong, correct, pass)
            }
            Edit::NeutralClause => {
                let correct = self.pair.correct_response()?;
                self.pass_next_to_original(with_neutral_clause(&correct), correct, pass)
            }
        })
    }

    /// Creates a pass with the original responses, image and reference. It records `perturbation` without
    /// applying it.
    fn original_pass(&self, perturbation: Option<Perturbation>) -> AuditPass {
        AuditPass {
            pair: self.index,
            perturbation,
            responses: self.texts.clone(),
            image: ImagePerturbation::Own,
            reference: ReferencePerturbation::Own,
            side: None,
            variant: None,
        }
    }

    /// Creates a pass with a perturbed response next to the unperturbed one.
    fn pass_next_to_original(
        &self,
        perturbed: String,
        original: String,
        pass: AuditPass,
    ) -> AuditPass {
        let responses = if self.side == 0 { [perturbed, original] } else { [original, perturbed] };
        AuditPass { responses, side: Some(self.side), ..pass }
    }

    /// Returns the response that receives a planted text: the worse one by the label, because its
    /// score can rise more, and because a text that makes it win buys a wrong verdict.
    fn planted_side(&self) -> usize {
        match self.pair.label {
            Some(Ordering::Greater) => 1,
            Some(Ordering::Less) => 0,
            _ => self.side,
        }
    }

    /// Creates a pass with a text planted in one response.
    fn plant(&self, add_text: impl Fn(&str) -> String, pass: AuditPass) -> AuditPass {
        let side = self.planted_side();
        let mut responses = self.texts.clone();
        if let Some(response) = responses.get_mut(side) {
            *response = add_text(response);
        }
        AuditPass { responses, side: Some(side), ..pass }
    }
}
