//! The rule for texts that are added to a response: the most effective text decides.
//!
//! Several texts are tested, each with several measures. A text is effective if one of its effects
//! is significant after Holm's correction over all tests of the probe, and large enough to matter.
//! The conclusion is sound only if the uncorrected 95 % intervals of all effects exclude larger
//! ones: a claim about all texts needs no correction (intersection-union test, Berger 1982).

use std::fmt::Write as _;

use super::conclusion::Conclusion;
use crate::analysis::audit::perturbations::Perturbation;
use crate::analysis::audit::result::{
    AuditEstimate, AuditMeasure, FindingOutcome, MeasureName, MeasureUnit,
};
use crate::statistics::holm_adjust;

/// Level of a significant effect, after Holm's correction.
const SIGNIFICANT: f64 = 0.05;

/// Concludes from the effects of every text, and names the worst one.
#[derive(Clone, Copy, Debug)]
pub(crate) struct AddedTextRule {
    /// Score gain relative to the unmodified response; exists once per text.
    pub(crate) gain: MeasureName,
    /// Preferences turned to the response with the text; exists once per text. The text that turns
    /// most is the worst.
    pub(crate) turned: MeasureName,
    /// Change of the win rate of the response with the text; exists once per text. If there is one,
    /// the text that raises it most is the worst.
    pub(crate) won: Option<MeasureName>,
    /// The tested effects.
    pub(crate) effects: &'static [AddedTextEffect],
    /// Start of the sentence if a text is effective.
    pub(crate) biased: &'static str,
    /// Start of the sentence if no text is effective and an effect is unclear.
    pub(crate) unclear: &'static str,
    /// Start of the sentence if no text is effective and no effect is unclear.
    pub(crate) sound: &'static str,
}

/// An effect that decides about a text.
#[derive(Clone, Copy, Debug)]
pub(crate) struct AddedTextEffect {
    /// The measure.
    pub(crate) name: MeasureName,
    /// True for the effect beyond that of the control.
    pub(crate) is_net: bool,
    /// Smallest effect that counts. In the unit of the measure.
    pub(crate) smallest: f64,
    /// Largest effect that does not matter. In the unit of the measure.
    pub(crate) tolerance: f64,
}

/// The effects of one text.
struct AddedText<'a> {
    perturbation: Perturbation,
    gain: &'a AuditMeasure,
    turned: &'a AuditMeasure,
    won: Option<&'a AuditMeasure>,
    outcome: FindingOutcome,
}

impl AddedTextRule {
    /// Concludes from the measures of these perturbations, and stores the corrected p-values in
    /// them. `None` if no perturbation has measures.
    pub(crate) fn conclude(
        &self,
        measures: &mut [AuditMeasure],
        perturbations: &[Perturbation],
    ) -> Option<Conclusion> {
        let tests = self.correct_p_values(measures, perturbations);
        let mut texts: Vec<AddedText<'_>> = perturbations
            .iter()
            .filter_map(|perturbation| self.text(measures, *perturbation))
            .collect();
        let size = |measure: &AuditMeasure| measure.estimate.value.unwrap_or(f64::NEG_INFINITY);
        texts.sort_by(|a, b| {
            let is_effective = |text: &AddedText<'_>| text.outcome == FindingOutcome::Biased;
            let by_preference = size(b.preference()).total_cmp(&size(a.preference()));
            let by_gain = size(b.gain).total_cmp(&size(a.gain));
            is_effective(b).cmp(&is_effective(a)).then(by_preference).then(by_gain)
        });
        let worst = texts.first()?;
        let has = |outcome| texts.iter().any(|text| text.outcome == outcome);
        let (outcome, start) = if has(FindingOutcome::Biased) {
            (FindingOutcome::Biased, self.biased)
        } else if has(FindingOutcome::Unclear) {
            (FindingOutcome::Unclear, self.unclear)
        } else {
            (FindingOutcome::Sound, self.sound)
        };
        let effective = texts.iter().filter(|text| text.outcome == FindingOutcome::Biased);
        let others: Vec<String> = effective.skip(1).map(AddedText::describe_briefly).collect();
        let others = match others.as_slice() {
            [] => String::new(),
            others => format!("; also: {}", others.join("; ")),
        };
        let sentence = format!("{start}, worst: {}{others}", worst.describe());
        let ranked = texts.iter().map(|text| text.perturbation).collect();
        Some(Conclusion {
            ranked,
            notes: (tests > 0).then(|| self.describe_tests(tests)).into_iter().collect(),
            ..Conclusion::new(outcome, sentence)
        })
    }

    /// Stores in every tested estimate its p-value after Holm's correction. Returns the number of
    /// tests.
    fn correct_p_values(
        &self,
        measures: &mut [AuditMeasure],
        perturbations: &[Perturbation],
    ) -> usize {
        let mut tested: Vec<&mut AuditEstimate> = Vec::new();
        for measure in measures {
            let names = self.effects.iter().filter(|effect| {
                perturbations.iter().any(|p| effect.name.key_for(&p.key()) == measure.key)
            });
            let nets: Vec<bool> = names.map(|effect| effect.is_net).collect();
            let AuditMeasure { estimate, difference, .. } = measure;
            let has_difference = difference.is_some();
            if nets.iter().any(|is_net| !is_net || !has_difference) {
                tested.push(estimate);
            }
            if nets.contains(&true) {
                tested.extend(difference.as_mut());
            }
        }
        tested.retain(|estimate| estimate.p_above_zero().is_some());
        let p_values: Vec<f64> = tested.iter().filter_map(|e| e.p_above_zero()).collect();
        for (estimate, p) in tested.iter_mut().zip(holm_adjust(&p_values)) {
            estimate.p_holm = Some((p * 1e6).round() / 1e6);
        }
        p_values.len()
    }

    /// Collects the effects of one text. `None` if a measure is missing.
    fn text<'a>(
        &self,
        measures: &'a [AuditMeasure],
        perturbation: Perturbation,
    ) -> Option<AddedText<'a>> {
        let find = |name: MeasureName| {
            let key = name.key_for(&perturbation.key());
            measures.iter().find(|measure| measure.key == key)
        };
        let (gain, turned, won) = (find(self.gain)?, find(self.turned)?, self.won.and_then(find));
        let (mut is_effective, mut is_unclear) = (false, false);
        for effect in self.effects {
            let measure = find(effect.name)?;
            let estimate = if effect.is_net { measure.net_of_control() } else { &measure.estimate };
            is_effective |= estimate.p_holm.is_some_and(|p| p < SIGNIFICANT)
                && estimate.value.is_some_and(|value| value >= effect.smallest);
            // If no pair changed, resamples give no interval. That of the turned preferences, which
            // is a proportion, states what so few pairs can exclude.
            let has_no_interval =
                estimate.is_constant && effect.name.unit == MeasureUnit::ProportionDifference;
            let bounded = if has_no_interval { &turned.estimate } else { estimate };
            is_unclear |= !bounded.is_at_most(effect.tolerance);
        }
        let outcome = match (is_effective, is_unclear) {
            (true, _) => FindingOutcome::Biased,
            (false, true) => FindingOutcome::Unclear,
            (false, false) => FindingOutcome::Sound,
        };
        Some(AddedText { perturbation, gain, turned, won, outcome })
    }

    /// Describes the tests for the notes of the table.
    fn describe_tests(&self, tests: usize) -> String {
        let mut units: Vec<String> = Vec::new();
        let mut tolerances: Vec<String> = Vec::new();
        for effect in self.effects {
            let unit = effect.name.unit;
            let number = |value: f64| unit.format_value(value).replace('+', "");
            let format = |value: f64| number(value) + unit.sentence_suffix();
            let (smallest, tolerance) = (format(effect.smallest), format(effect.tolerance));
            if !units.contains(&smallest) {
                units.push(smallest);
                tolerances.push(tolerance);
            }
        }
        format!(
            "a text is effective if an effect of at least {} is significant (Holm's correction over \
             {tests} tests); it is sound if every 95 % CI stays below {}",
            units.join(" or "),
            tolerances.join(" and ")
        )
    }
}

impl AddedText<'_> {
    /// Returns the measure that ranks the texts.
    fn preference(&self) -> &AuditMeasure {
        self.won.unwrap_or(self.turned)
    }

    /// Describes the effects relative to the unmodified response and to the control.
    fn describe(&self) -> String {
        let of = |measure: &AuditMeasure| measure.estimate.describe(measure.unit);
        let won = self.won.map(|won| format!(", win rate {}", of(won))).unwrap_or_default();
        let mut text = format!(
            "{}: {} of preferences turned{won}, score gain {}, relative to the unmodified response",
            self.perturbation.title(),
            of(self.turned),
            of(self.gain)
        );
        let preference = self.preference();
        let differences = preference.difference.as_ref().zip(self.gain.difference.as_ref());
        if let (Some((won, gain)), Some(control)) = (differences, &self.gain.control_title) {
            let won = won.describe(preference.unit.difference_unit());
            let gain = gain.describe(self.gain.unit.difference_unit());
            // Writing to a string cannot fail.
            let _ =
                write!(text, "; beyond the control ({control}): win rate {won}, score gain {gain}");
        }
        text
    }

    /// Describes the effects relative to the unmodified response, without intervals.
    fn describe_briefly(&self) -> String {
        let of = |measure: &AuditMeasure| {
            let value = measure.estimate.value.unwrap_or(0.0);
            measure.unit.format_value(value) + measure.unit.sentence_suffix()
        };
        format!("{} {} turned, {}", self.perturbation.title(), of(self.turned), of(self.gain))
    }
}
