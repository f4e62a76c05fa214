//! What will be judged: every pair as it is, and every change of it, before the judge is asked at all.

use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::sync::Arc;

use rand::{Rng as _, SeedableRng as _};
use rand_chacha::ChaCha8Rng;

use super::probe::{Perturbation, Probe};
use crate::analysis::audit::image_perturbation::ImagePerturbation;
use crate::analysis::audit::medical_errors::with_error;
use crate::analysis::audit::response_perturbation::{PLANTS, bulleted, harmless, lines, planted};
use crate::data::cases::Case;

/// A pair of responses of a case.
#[derive(Clone, Debug)]
pub struct AuditPair {
    /// The case.
    pub case: Arc<Case>,
    /// Which two of its responses.
    pub pair: [usize; 2],
    /// What is drawn as a whole.
    pub cluster: String,
    /// Which response is better by its labels.
    pub label: Option<Ordering>,
}

/// Something to be judged.
#[derive(Clone, Debug)]
pub struct AuditPass {
    /// The place of its pair.
    pub pair: usize,
    /// What is changed; `None` for the pair as it is.
    pub change: Option<Perturbation>,
    /// The two answers.
    pub responses: [String; 2],
    /// The image.
    pub picture: ImagePerturbation,
    /// Which answer is changed.
    pub side: Option<usize>,
}

/// All that will be judged, and what was left out of it.
#[derive(Clone, Debug, Default)]
pub struct AuditPlan {
    /// In the order of the pairs, each as it is first.
    pub sittings: Vec<AuditPass>,
    /// Answers without a word of an error's kind.
    pub without: BTreeMap<Perturbation, usize>,
    /// What was left out, by probe, in words with numbers.
    pub left_out: BTreeMap<(Probe, &'static str), usize>,
}

impl AuditPair {
    /// The texts of the two responses.
    pub fn texts(&self) -> [String; 2] {
        let text = |i: usize| self.case.responses.get(i).map(|r| r.text.clone());
        self.pair.map(|i| text(i).unwrap_or_default())
    }

    /// The names of the two models.
    pub fn models(&self) -> [String; 2] {
        let model = |i: usize| self.case.responses.get(i).map(|r| r.model.clone());
        self.pair.map(|i| model(i).unwrap_or_default())
    }

    /// An answer that is known to be right, with which answer stands for it: the reference, else the
    /// better one by the labels.
    fn right(&self) -> Option<String> {
        let reference = self
            .case
            .reference
            .as_ref()
            .filter(|r| !r.trim().is_empty());
        let [first, second] = self.texts();
        let better = match self.label {
            Some(Ordering::Greater) => Some(first),
            Some(Ordering::Less) => Some(second),
            _ => None,
        };
        reference.cloned().or(better)
    }
}

impl AuditPlan {
    /// Every pair, with the changes of these probes. `strangers` says for each pair which case has
    /// another image.
    pub fn new(
        pairs: &[AuditPair],
        probes: &[Probe],
        strangers: &[Option<Arc<Case>>],
        seed: u64,
    ) -> Self {
        let mut plan = Self::default();
        let mut random = ChaCha8Rng::seed_from_u64(seed);
        let mut last_case: Option<&str> = None;
        for (number, pair) in pairs.iter().enumerate() {
            let again = last_case.replace(&pair.case.id) == Some(&pair.case.id);
            // Drawn for every pair, so that the choice of probes moves nobody's lot.
            let (which, side) = (random.random_range(0..2), random.random_range(0..2));
            let texts = pair.texts();
            plan.add(number, None, texts.clone(), None);
            for probe in probes {
                match probe {
                    Probe::Identical => {
                        let text = &texts[which];
                        let both = [text.clone(), text.clone()];
                        plan.add(number, Some(Perturbation::Identical), both, None);
                    }
                    Probe::Formatting => plan.formatting(number, &texts[which], side),
                    Probe::Image => {
                        let stranger = strangers.get(number).and_then(Option::as_deref);
                        plan.image(number, pair, &texts, stranger);
                    }
                    Probe::Planted => {
                        // The worse one has more to gain.
                        let side = match pair.label {
                            Some(Ordering::Greater) => 1,
                            Some(Ordering::Less) => 0,
                            _ => side,
                        };
                        plan.planted(number, &texts, side);
                    }
                    Probe::Errors => plan.errors(number, pair, side, again),
                    _ => {}
                }
            }
        }
        plan
    }

    fn add(
        &mut self,
        pair: usize,
        change: Option<Perturbation>,
        responses: [String; 2],
        side: Option<usize>,
    ) {
        self.sittings.push(AuditPass {
            pair,
            change,
            responses,
            picture: ImagePerturbation::Own,
            side,
        });
    }

    fn leave_out(&mut self, probe: Probe, why: &'static str) {
        *self.left_out.entry((probe, why)).or_default() += 1;
    }

    fn formatting(&mut self, pair: usize, text: &str, side: usize) {
        let entry = |line: &str| line.trim_start().starts_with(['-', '*', '•']);
        if text.lines().any(entry) {
            self.leave_out(Probe::Formatting, "answers that are lists already");
            return;
        }
        for (change, made) in [
            (Perturbation::Bulleted, bulleted(text)),
            (Perturbation::Lines, lines(text)),
        ] {
            let both = beside(made, text.to_owned(), side);
            self.add(pair, Some(change), both, Some(side));
        }
    }

    fn image(
        &mut self,
        number: usize,
        pair: &AuditPair,
        texts: &[String; 2],
        stranger: Option<&Case>,
    ) {
        if pair.case.image.is_none() {
            self.leave_out(Probe::Image, "pairs without an image");
            return;
        }
        let exchanged = stranger.map(|case| {
            (
                Perturbation::Exchanged,
                ImagePerturbation::Of(case.id.clone()),
            )
        });
        if exchanged.is_none() {
            self.leave_out(
                Probe::Image,
                "pairs for whose image there is no other to exchange it with",
            );
        }
        let shown = [
            (Perturbation::Blank, ImagePerturbation::Blank),
            (Perturbation::Cropped, ImagePerturbation::Cropped),
            (Perturbation::Faint, ImagePerturbation::Faint),
        ];
        for (change, picture) in shown.into_iter().chain(exchanged) {
            self.sittings.push(AuditPass {
                pair: number,
                change: Some(change),
                responses: texts.clone(),
                picture,
                side: None,
            });
        }
    }

    fn planted(&mut self, pair: usize, texts: &[String; 2], side: usize) {
        for (change, plant, neutral) in PLANTS {
            let control = change.control().map(|control| (control, neutral));
            for (change, text) in [(change, plant)].into_iter().chain(control) {
                let mut both = texts.clone();
                if let Some(response) = both.get_mut(side) {
                    *response = planted(response, text);
                }
                self.add(pair, Some(change), both, Some(side));
            }
        }
    }

    /// `again`: the pair is of the same case as the one before; what is made of the reference would be
    /// the same.
    fn errors(&mut self, number: usize, pair: &AuditPair, side: usize, again: bool) {
        if again && pair.case.reference.is_some() {
            return;
        }
        let Some(right) = pair.right() else {
            self.leave_out(
                Probe::Errors,
                "pairs of which no answer is known to be right",
            );
            return;
        };
        let mut any = false;
        for change in Probe::Errors.changes().filter(|c| c.is_tested()) {
            match with_error(change, &right, &pair.case.question) {
                Some(wrong) => {
                    let both = beside(wrong, right.clone(), side);
                    self.add(number, Some(change), both, Some(side));
                    any = true;
                }
                None => *self.without.entry(change).or_default() += 1,
            }
        }
        if any {
            let both = beside(harmless(&right), right.clone(), side);
            self.add(number, Some(Perturbation::Harmless), both, Some(side));
        }
    }
}

/// A changed answer on its side, the other on the other.
fn beside(changed: String, other: String, side: usize) -> [String; 2] {
    if side == 0 {
        [changed, other]
    } else {
        [other, changed]
    }
}
