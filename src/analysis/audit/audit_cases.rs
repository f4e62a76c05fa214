//! An audit that judges cases, with and without perturbations.

use std::path::Path;
use std::sync::Arc;

use acem3_experts::Aspect;
use acem3_experts::prompt::Form;
use anyhow::{Context as _, Result};

use super::audit_request::AuditRequest;
use super::from_verdicts::{audit_result, check_thresholds};
use super::probe::Probe;
use super::rejudging::{AuditPair, AuditPlan, OtherCases, PassResult, PassVerdict};
use super::result::{AuditResult, AuditTrial, Finding};
use super::trial_probes::{LabelledTrial, SkippedPairs, evaluate_probe};
use super::verdict_probes::{AuditVerdicts, label_orders};
use crate::analysis::agreement::LabelledUnits;
use crate::analysis::verdicts;
use crate::analysis::verdicts::Verdicts;
use crate::data::cases::{Case, UnscoredReason};
use crate::data::images::ImageReader;
use crate::judging::judge::{Judge, Unscored};
use crate::judging::provenance::judge_digest;
use crate::judging::run::pairs::select_pairs;
use crate::judging::run::record::{ImageInfo, Record, RecordOutcome, RecordSubject};
use crate::support::digest::Digest;

/// Cases to judge, with and without perturbations.
#[derive(Debug)]
pub struct AuditCases {
    /// The pairs of the cases.
    pub pairs: Vec<AuditPair>,
    /// The same pairs as unscored verdicts; labels are joined to them.
    pub verdicts: Verdicts,
    /// Number of cases that could not be read, or that have no pair.
    pub unreadable: usize,
    subjects: Vec<RecordSubject>,
    /// The cases that the image and the reference of each pair are exchanged with.
    others: Vec<OtherCases>,
    /// True if the judge sees the reference.
    shows_reference: bool,
    /// True if the judge scores medical knowledge.
    scores_knowledge: bool,
    judge_name: String,
    judge_digest: Digest,
}

impl AuditCases {
    /// Collects the pairs of cases. `images` must be able to read the images of the cases.
    ///
    /// # Errors
    ///
    /// If two cases have the same id.
    pub fn new(
        path: &Path,
        cases: Vec<Case>,
        images: &mut ImageReader,
        judge: &dyn Judge,
    ) -> Result<Self> {
        let digest = judge_digest(&judge.provenance());
        let (mut audit_pairs, mut subjects, mut unreadable) = (Vec::new(), Vec::new(), 0);
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
                let mut subject = RecordSubject::for_responses(&case, Form::Pair, &pair, &digest);
                subject.image.clone_from(&image);
                subjects.push(subject);
                audit_pairs.push(AuditPair {
                    case: Arc::clone(&case),
                    pair,
                    cluster: String::new(),
                    label: None,
                });
            }
        }
        let unjudged_record = |subject: &RecordSubject| {
            let unscored = Unscored::new(UnscoredReason::Refused, "not judged yet".to_owned());
            Record::new(subject.clone(), RecordOutcome::Unscored(unscored))
        };
        let judge_name = judge.name();
        let records = subjects.iter().map(unjudged_record);
        let verdicts = verdicts::from_records(path, &judge_name, records)?;
        let images: Vec<Option<Digest>> =
            subjects.iter().map(|subject| subject.image.as_ref()?.sha256).collect();
        let mut cases = Self {
            others: OtherCases::find(&audit_pairs, &images),
            pairs: audit_pairs,
            verdicts,
            unreadable,
            subjects,
            shows_reference: judge.shows_reference(),
            scores_knowledge: judge.scores_aspect(Aspect::MEDICAL_KNOWLEDGE),
            judge_name,
            judge_digest: digest,
        };
        cases.join_labels(None);
        Ok(cases)
    }

    /// Copies clusters and labels from the verdicts to the pairs.
    pub fn join_labels(&mut self, units: Option<&LabelledUnits>) {
        let labels = label_orders(&self.verdicts, units);
        let labelled = self.verdicts.pairs.iter().zip(labels);
        for (pair, (verdict, label)) in self.pairs.iter_mut().zip(labelled) {
            pair.cluster.clone_from(&verdict.cluster);
            pair.label = label;
        }
    }

    /// Plans the passes of the requested probes.
    pub fn plan(&self, request: &AuditRequest) -> AuditPlan {
        let can_run = |probe: &Probe| self.obstacle(*probe).is_none();
        let probes = request.probes.iter().copied().filter(can_run).collect();
        let request = AuditRequest { probes, ..request.clone() };
        AuditPlan::new(&self.pairs, &request, &self.others)
    }

    /// Returns why a probe cannot run on any of the cases with this judge; `None` if it may run.
    fn obstacle(&self, probe: Probe) -> Option<&'static str> {
        match probe {
            Probe::Reference if !self.shows_reference => {
                Some("the judge does not see the reference; --reference show shows it")
            }
            Probe::Image | Probe::Reference | Probe::Errors if !self.scores_knowledge => {
                Some("the rubric has no aspect medical_knowledge, whose scores the probe compares")
            }
            Probe::Reference if self.others.iter().all(|other| other.reference.is_none()) => {
                Some("no two cases have different references")
            }
            _ => None,
        }
    }

    /// Evaluates the results of a plan.
    ///
    /// # Errors
    ///
    /// If a pass has no result.
    pub fn evaluate(
        &self,
        plan: &AuditPlan,
        results: &[PassResult],
        units: Option<&LabelledUnits>,
        request: &AuditRequest,
    ) -> Result<AuditResult> {
        let originals: Vec<&PassResult> = plan
            .passes
            .iter()
            .zip(results)
            .filter(|(pass, _)| pass.perturbation.is_none())
            .map(|(_, result)| result)
            .collect();
        let verdicts = self.original_verdicts(&originals)?;
        let trials =
            self.build_trials(plan, results, &originals).context("a pass without a result")?;
        let audit_verdicts = AuditVerdicts::new(&verdicts, units, request.bootstrap);
        let labelled = self.label_trials(plan, &trials);
        let run_probe = |probe: &Probe| {
            if let Some(reason) = self.obstacle(*probe) {
                Finding::not_run(*probe, reason)
            } else if probe.needs_judging() {
                evaluate_trials(*probe, plan, &labelled, request)
            } else {
                audit_verdicts.run_probe(*probe)
            }
        };
        let findings = request.probes.iter().map(run_probe).collect();
        let audit = AuditResult {
            judge_hash: self.judge_digest.short_hex(),
            unreadable: self.unreadable,
            judged: results.iter().filter(|result| result.is_ok()).count(),
            ..audit_result(&audit_verdicts, request, findings)
        };
        let audit = AuditResult { trials, ..audit };
        Ok(check_thresholds(audit, &request.thresholds))
    }

    /// Collects the verdicts on the original pairs.
    fn original_verdicts(&self, originals: &[&PassResult]) -> Result<Verdicts> {
        let record = |(subject, result): (&RecordSubject, &&PassResult)| {
            let outcome = match result {
                Ok(PassVerdict::Original(verdict)) => RecordOutcome::Judged(verdict.clone()),
                Ok(PassVerdict::Perturbed(_)) => return None,
                Err(unscored) => RecordOutcome::Unscored(unscored.clone()),
            };
            Some(Record::new(subject.clone(), outcome))
        };
        let records = self.subjects.iter().zip(originals).filter_map(record);
        let mut verdicts = verdicts::from_records(&self.verdicts.path, &self.judge_name, records)?;
        for (verdict, pair) in verdicts.pairs.iter_mut().zip(&self.pairs) {
            verdict.cluster.clone_from(&pair.cluster);
        }
        Ok(verdicts)
    }

    /// Collects every perturbed pair with its verdicts before and after. `None` if a pair is
    /// missing.
    fn build_trials(
        &self,
        plan: &AuditPlan,
        results: &[PassResult],
        originals: &[&PassResult],
    ) -> Option<Vec<AuditTrial>> {
        let mut trials = Vec::new();
        for (pass, result) in plan.passes.iter().zip(results) {
            let Some(perturbation) = pass.perturbation else {
                continue;
            };
            let pair = self.pairs.get(pass.pair)?;
            let scores = |result: &PassResult| result.as_ref().ok().map(PassVerdict::scores);
            trials.push(AuditTrial {
                perturbation,
                case: pair.case.id.clone(),
                pair: pair.models(),
                cluster: pair.cluster.clone(),
                responses: pass.responses.clone(),
                image: pass.image.clone(),
                reference: pass.reference.clone(),
                side: pass.side,
                variant: pass.variant.clone(),
                before: scores(originals.get(pass.pair)?),
                after: scores(result),
                unscored: result.as_ref().err().cloned(),
            });
        }
        Some(trials)
    }

    /// Adds to each trial of a plan the label of its pair.
    fn label_trials<'a>(
        &self,
        plan: &AuditPlan,
        trials: &'a [AuditTrial],
    ) -> Vec<LabelledTrial<'a>> {
        let perturbed = plan.passes.iter().filter(|p| p.perturbation.is_some());
        let labels = perturbed.map(|pass| self.pairs.get(pass.pair).and_then(|pair| pair.label));
        let labelled = trials.iter().zip(labels);
        labelled.map(|(trial, label)| LabelledTrial { trial, label }).collect()
    }
}

/// Evaluates the trials of one probe.
fn evaluate_trials(
    probe: Probe,
    plan: &AuditPlan,
    trials: &[LabelledTrial<'_>],
    request: &AuditRequest,
) -> Finding {
    let of_probe =
        trials.iter().filter(|labelled| labelled.trial.perturbation.is_judged_for(probe));
    let skipped = plan.skipped.iter().filter(|((skipped_by, _), _)| *skipped_by == probe);
    let not_applicable = plan.not_applicable.iter();
    let skipped = SkippedPairs {
        not_applicable: not_applicable
            .filter(|(perturbation, _)| perturbation.probe() == probe)
            .map(|(perturbation, n)| (*perturbation, *n))
            .collect(),
        reasons: skipped.map(|((_, reason), n)| (*reason, *n)).collect(),
    };
    let trials = of_probe.copied().collect();
    evaluate_probe(probe, trials, &skipped, request.bootstrap)
}
