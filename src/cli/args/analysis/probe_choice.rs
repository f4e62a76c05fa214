//! A value of `--probes`: a probe, or a part of the probe `planted`.

use clap::ValueEnum;
use clap::builder::PossibleValue;

use crate::analysis::audit::{PlantedKind, Probe};

/// A value of `--probes`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProbeChoice {
    /// A probe. `planted` includes `neutral`.
    Probe(Probe),
    /// The probe `planted` with one kind of text, and `neutral`.
    Planted(PlantedKind),
}

/// Number of values.
const COUNT: usize = Probe::ALL.len() + PlantedKind::ALL.len();

/// All values: the parts of `planted` come last.
const VARIANTS: [ProbeChoice; COUNT] = {
    let mut variants = [ProbeChoice::Planted(PlantedKind::Junk); COUNT];
    let mut i = 0;
    while i < Probe::ALL.len() {
        variants[i] = ProbeChoice::Probe(Probe::ALL[i]);
        i += 1;
    }
    while i < variants.len() {
        variants[i] = ProbeChoice::Planted(PlantedKind::ALL[i - Probe::ALL.len()]);
        i += 1;
    }
    variants
};

impl ValueEnum for ProbeChoice {
    fn value_variants<'a>() -> &'a [Self] {
        &VARIANTS
    }

    fn to_possible_value(&self) -> Option<PossibleValue> {
        match self {
            Self::Probe(probe) => probe.to_possible_value(),
            Self::Planted(kind) => kind.to_possible_value(),
        }
    }
}

impl ProbeChoice {
    /// Returns the probes of some choices, in the order in which they are listed; all without a
    /// choice.
    pub fn probes(choices: &[Self]) -> Vec<Probe> {
        let of_choice = |choice: &Self| match choice {
            Self::Probe(Probe::Planted) | Self::Planted(_) => vec![Probe::Planted, Probe::Neutral],
            Self::Probe(probe) => vec![*probe],
        };
        let mut probes: Vec<Probe> = choices.iter().flat_map(of_choice).collect();
        if probes.is_empty() {
            probes = Probe::ALL.into();
        }
        probes.sort_unstable();
        probes.dedup();
        probes
    }

    /// Returns the kinds of planted text of some choices; empty for all kinds.
    pub fn planted_kinds(choices: &[Self]) -> Vec<PlantedKind> {
        if choices.contains(&Self::Probe(Probe::Planted)) {
            return Vec::new();
        }
        let kind = |choice: &Self| match choice {
            Self::Planted(kind) => Some(*kind),
            Self::Probe(_) => None,
        };
        choices.iter().filter_map(kind).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_select_planted_and_neutral() {
        let choice = |name: &str| ProbeChoice::from_str(name, false).unwrap();
        let junk = [choice("planted-junk"), choice("image")];
        assert_eq!(ProbeChoice::probes(&junk), [Probe::Image, Probe::Planted, Probe::Neutral]);
        assert_eq!(ProbeChoice::planted_kinds(&junk), [PlantedKind::Junk]);
        let all = [choice("planted"), choice("planted-junk")];
        assert_eq!(ProbeChoice::probes(&all), [Probe::Planted, Probe::Neutral]);
        assert!(ProbeChoice::planted_kinds(&all).is_empty());
        assert_eq!(ProbeChoice::probes(&[]), Probe::ALL);
        assert_eq!(ProbeChoice::value_variants().len(), 18);
    }
}
