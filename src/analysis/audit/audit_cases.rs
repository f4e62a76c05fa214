//! What is audited: the records of a run, or cases that are judged for it.

use std::collections::{BTreeSet, HashMap};
use std::path::Path;
use std::sync::Arc;

use anyhow::{Context as _, Result};

use super::plan::{AuditPair, AuditPlan};
use super::probe::Probe;
use super::result::{AuditResult, Finding, SCHEMA};
use super::trial::AuditTrial;
use crate::analysis::agreement::LabelledUnits;
use crate::analysis::audit::audit_verdicts::{AuditVerdicts, orders};
use crate::analysis::audit::image_probes;
use crate::analysis::audit::image_probes::PairLabels;
use crate::analysis::audit::rejudge::{PassResult, PassVerdict};
use crate::analysis::audit::response_probes;
use crate::analysis::audit::threshold::Threshold;
use crate::analysis::audit::trial_set::{TrialSet, unscored_note};
use crate::analysis::verdicts;
use crate::analysis::verdicts::Verdicts;
use crate::data::cases::{Case, UnscoredReason};
use crate::data::images::ImageReader;
use crate::judging::judge::{Judge, Unscored};
use crate::judging::provenance::judge_digest;
use crate::judging::run::manifest::Manifest;
use crate::judging::run::pairs::select_pairs;
use crate::judging::run::record::{ImageInfo, Record, RecordOutcome, RecordSubject as Of};
use crate::statistics::Bootstrap;
use crate::support::digest::Digest;

/// What is asked of an audit.
#[derive(Clone, Debug)]
pub struct AuditRequest {
    /// The probes, in the order in which they are told.
    pub probes: Vec<Probe>,
    /// How intervals are drawn; its seed draws lots, too.
    pub bootstrap: Bootstrap,
    /// The thresholds.
    pub limits: Vec<Threshold>,
}

/// Cases to be judged, as they are and changed.
#[derive(Debug)]
pub struct AuditCases {
    /// Their pairs.
    pub pairs: Vec<AuditPair>,
    /// The same pairs as verdicts that are not there yet: labels are joined to them.
    pub verdicts: Verdicts,
    /// Cases that could not be read, and those without a pair.
    pub unreadable: usize,
    records: Vec<Of>,
    judge: (String, Digest),
}

impl AuditCases {
    /// All pairs of some cases. `images` must be those of their source.
    ///
    /// # Errors
    ///
    /// If two cases have one id.
    pub fn new(
        path: &Path,
        cases: Vec<Case>,
        images: &mut ImageReader,
        judge: &dyn Judge,
    ) -> Result<Self> {
        let digest = judge_digest(&judge.provenance());
        let (mut all, mut records, mut unreadable) = (Vec::new(), Vec::new(), 0);
        for case in cases.into_iter().map(Arc::new) {
            let Ok(pairs) = select_pairs(&case, None) else {
                unreadable += 1;
                continue;
            };
            let image = case.image.as_ref().map(|source| ImageInfo {
                name: images.name(source),
                sha256: images.read(source).ok().map(|image| image.sha256),
                view: None,
            });
            for pair in pairs {
                let mut of = Of::of_pair(&case, pair, &digest);
                of.image.clone_from(&image);
                records.push(of);
                all.push(AuditPair {
                    case: Arc::clone(&case),
                    pair,
                    cluster: String::new(),
                    label: None,
                });
            }
        }
        let yet = |of: &Of| {
            let unscored = Unscored {
                reason: UnscoredReason::Refused,
                message: "not judged yet".to_owned(),
            };
            Record::new(of.clone(), RecordOutcome::Unscored(unscored))
        };
        let verdicts = verdicts::of_records(path, &judge.name(), records.iter().map(yet))?;
        let mut subject = Self {
            pairs: all,
            verdicts,
            unreadable,
            records,
            judge: (judge.name(), digest),
        };
        subject.settle(None);
        Ok(subject)
    }

    /// Tells pairs what their verdicts know: what is drawn with them as a whole, and their labels.
    pub fn settle(&mut self, units: Option<&LabelledUnits>) {
        let labels = orders(&self.verdicts, units);
        let known = self.verdicts.pairs.iter().zip(labels);
        for (pair, (verdict, label)) in self.pairs.iter_mut().zip(known) {
            pair.cluster.clone_from(&verdict.cluster);
            pair.label = label;
        }
    }

    /// All that has to be judged for some probes.
    pub fn plan(&self, asked: &AuditRequest) -> AuditPlan {
        let strangers = self.strangers();
        AuditPlan::new(&self.pairs, &asked.probes, &strangers, asked.bootstrap.seed)
    }

    /// For each pair the next case that has another image.
    fn strangers(&self) -> Vec<Option<Arc<Case>>> {
        let image = |i: usize| self.records.get(i)?.image.as_ref()?.sha256;
        let n = self.pairs.len();
        let different: BTreeSet<Digest> = (0..n).filter_map(image).collect();
        let stranger = |i: usize| {
            let mut later = (1..n).map(|step| (i + step) % n);
            let other = later.find(|j| image(*j).is_some() && image(*j) != image(i))?;
            self.pairs.get(other).map(|pair| Arc::clone(&pair.case))
        };
        let several = different.len() > 1;
        (0..n)
            .map(|i| several.then(|| stranger(i)).flatten())
            .collect()
    }

    /// What is found in what came of a plan.
    ///
    /// # Errors
    ///
    /// If not every sitting has an outcome.
    pub fn audit(
        &self,
        (plan, sat): (&AuditPlan, Vec<PassResult>),
        units: Option<&LabelledUnits>,
        asked: &AuditRequest,
    ) -> Result<AuditResult> {
        let bases = plan
            .sittings
            .iter()
            .zip(&sat)
            .filter(|(s, _)| s.change.is_none());
        let bases: Vec<&PassResult> = bases.map(|(_, sat)| sat).collect();
        let record = |(of, sat): (&Of, &&PassResult)| {
            let outcome = match sat {
                Ok(PassVerdict::AsItIs(judgement)) => RecordOutcome::Judged(judgement.clone()),
                Ok(PassVerdict::Changed(_)) => return None,
                Err(unscored) => RecordOutcome::Unscored(unscored.clone()),
            };
            Some(Record::new(of.clone(), outcome))
        };
        let records = self.records.iter().zip(&bases).filter_map(record);
        let (name, digest) = &self.judge;
        let mut verdicts = verdicts::of_records(&self.verdicts.path, name, records)?;
        for (verdict, pair) in verdicts.pairs.iter_mut().zip(&self.pairs) {
            verdict.cluster.clone_from(&pair.cluster);
        }
        let trials = self
            .trials(plan, &sat, &bases)
            .context("an outcome is missing")?;
        let evidence = AuditVerdicts::new(&verdicts, units, asked.bootstrap);
        let find = |probe: &Probe| {
            if probe.judges_again() {
                self.find(*probe, plan, &trials, asked.bootstrap)
            } else {
                evidence.find(*probe)
            }
        };
        let mut audit = AuditResult {
            judge_hash: digest.short(),
            unreadable: self.unreadable,
            judged: sat.iter().filter(|sat| sat.is_ok()).count(),
            probes: asked.probes.iter().map(find).collect(),
            ..of_verdicts(&evidence, asked)
        };
        audit.trials = trials;
        Ok(audit.held_to(&asked.limits))
    }

    /// Every changed pair with its verdicts before and after.
    fn trials(
        &self,
        plan: &AuditPlan,
        sat: &[PassResult],
        bases: &[&PassResult],
    ) -> Option<Vec<AuditTrial>> {
        let mut trials = Vec::new();
        for (sitting, sat) in plan.sittings.iter().zip(sat) {
            let Some(change) = sitting.change else {
                continue;
            };
            let pair = self.pairs.get(sitting.pair)?;
            let marks = |sat: &PassResult| sat.as_ref().ok().map(PassVerdict::marks);
            trials.push(AuditTrial {
                change,
                case: pair.case.id.clone(),
                pair: pair.models(),
                cluster: pair.cluster.clone(),
                responses: sitting.responses.clone(),
                picture: sitting.picture.clone(),
                side: sitting.side,
                before: marks(bases.get(sitting.pair)?),
                after: marks(sat),
                unscored: sat.as_ref().err().cloned(),
            });
        }
        Some(trials)
    }

    fn find(
        &self,
        probe: Probe,
        plan: &AuditPlan,
        all: &[AuditTrial],
        bootstrap: Bootstrap,
    ) -> Finding {
        let own: Vec<&AuditTrial> = all.iter().filter(|t| t.change.probe() == probe).collect();
        let lost = unscored_note(&own);
        let trials = TrialSet::new(own, bootstrap);
        let mut finding = match probe {
            Probe::Identical => response_probes::identical(&trials),
            Probe::Formatting => response_probes::formatting(&trials),
            Probe::Planted => response_probes::planted(&trials),
            Probe::Errors => {
                let without: Vec<_> = plan.without.iter().map(|(k, n)| (*k, *n)).collect();
                image_probes::errors(&trials, &without)
            }
            _ => image_probes::image(&trials, &self.known()),
        };
        let left_out = plan.left_out.iter().filter(|((of, _), _)| *of == probe);
        finding
            .notes
            .extend(left_out.map(|((_, why), n)| format!("left out: {n} {why}")));
        finding.notes.extend(lost);
        finding
    }

    /// The labels by case and models.
    fn known(&self) -> PairLabels<'_> {
        let mut known: PairLabels<'_> = HashMap::new();
        for pair in &self.pairs {
            let model = |i: usize| pair.case.responses.get(i).map_or("", |r| r.model.as_str());
            if let Some(label) = pair.label {
                known.insert((&pair.case.id, pair.pair.map(model)), label);
            }
        }
        known
    }
}

impl AuditResult {
    /// An audit of the verdicts of a run, without judging anything.
    pub fn of_records(
        verdicts: &Verdicts,
        units: Option<&LabelledUnits>,
        asked: &AuditRequest,
    ) -> Self {
        let evidence = AuditVerdicts::new(verdicts, units, asked.bootstrap);
        of_verdicts(&evidence, asked).held_to(&asked.limits)
    }

    fn held_to(mut self, limits: &[Threshold]) -> Self {
        self.limits = limits.iter().map(|limit| limit.check(&self)).collect();
        self
    }
}

fn of_verdicts(evidence: &AuditVerdicts<'_>, asked: &AuditRequest) -> AuditResult {
    let verdicts = evidence.verdicts;
    AuditResult {
        schema: SCHEMA,
        version: Manifest::VERSION.to_owned(),
        source: verdicts.path.display().to_string(),
        judge: verdicts.name.clone(),
        judge_hash: verdicts.judge.clone(),
        labels: None,
        pairs: verdicts.pairs.len(),
        unscored: verdicts.unscored(),
        labelled: evidence.labelled(),
        unreadable: verdicts.without_pair,
        judged: 0,
        draws: asked.bootstrap.draws,
        seed: asked.bootstrap.seed,
        probes: asked
            .probes
            .iter()
            .map(|probe| evidence.find(*probe))
            .collect(),
        limits: Vec::new(),
        trials: Vec::new(),
    }
}
