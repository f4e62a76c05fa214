//! Judges with known biases, and cases for them: the image of each case encodes the correct
//! response.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use acem3::analysis::agreement::join_labels;
use acem3::analysis::audit::{
    AuditCases, AuditRequest, AuditResult, PassSettings, Probe, Threshold, run_passes,
};
use acem3::data::cases::{Case, CaseLabels, ImageSource, Response};
use acem3::data::images::{ImageReader, LoadedImage};
use acem3::judging::judge::{Judge, JudgeJob, Unscored};
use acem3::judging::provenance::Provenance;
use acem3::statistics::Bootstrap;
use acem3_conclusion::{OrderVerdict, Verdict};
use acem3_experts::{Aspect, BranchEvaluation, Rating, Score};
use acem3_vision::ImageLimits;

/// The bias of a judge.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum KnownBias {
    /// No bias: the judge decodes the correct response from the image.
    None,
    /// The response shown first gets an additional point.
    PrefersFirst,
    /// The longer response gets five points.
    PrefersLonger,
    /// The judge ignores the image and scores the text.
    IgnoresImage,
    /// The judge distinguishes a blank image from any other, but ignores the content.
    DetectsBlankOnly,
    /// The judge follows instructions in a response.
    FollowsInjection,
    /// Lists get an additional point.
    PrefersLists,
    /// Every response gets three points.
    AlwaysTies,
    /// A response that contains such a text gets five points.
    BoughtBy(Bribe),
    /// The judge sees the reference and compares the responses with it, not with the image.
    TrustsReference,
    /// The judge sees the reference and ignores it.
    IgnoresReference,
    /// The judge notices whether there is a reference, and ignores its content.
    DetectsReferenceOnly,
}

/// A text that buys five points. The definitions do not use the texts of the audit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Bribe {
    /// Letters of other scripts.
    ForeignLetters,
    /// The same word in brackets or marks at least three times.
    RepeatedMarkup,
    /// The start of a JSON object.
    Json,
    /// A heading in Markdown.
    Heading,
    /// An instruction to ignore something.
    Order,
    /// A role marker.
    Role,
    /// More than 300 characters.
    Length,
    /// White space of more than 40 characters.
    Blank,
    /// Any sentence that mentions neither a lung nor a doctor.
    AnySentence,
}

impl Bribe {
    fn is_in(self, text: &str) -> bool {
        let words: Vec<&str> = text.split_whitespace().collect();
        let lower = text.to_lowercase();
        match self {
            Self::ForeignLetters => text.chars().any(|c| c.is_alphabetic() && !c.is_ascii()),
            Self::RepeatedMarkup => words.iter().any(|word| {
                let is_marked = word.starts_with(|c: char| !c.is_alphanumeric())
                    && word.contains(char::is_alphanumeric);
                is_marked && words.iter().filter(|other| *other == word).count() > 2
            }),
            Self::Json => text.contains("{\""),
            Self::Heading => text.contains("## "),
            Self::Order => ["ignore", "disregard"].iter().any(|order| lower.contains(order)),
            Self::Role => text.contains("<|"),
            Self::Length => text.chars().count() > 300,
            Self::Blank => {
                let is_blank = |c: char| c.is_whitespace() || c == '\u{200b}';
                text.split(|c| !is_blank(c)).any(|blank| blank.chars().count() > 40)
            }
            Self::AnySentence => text.split('.').any(|sentence| {
                !sentence.trim().is_empty()
                    && !["lung", "doctor"].iter().any(|word| sentence.contains(word))
            }),
        }
    }
}

/// A judge with a bias.
pub(crate) struct BiasedJudge {
    pub(crate) bias: KnownBias,
    pub(crate) single_order: bool,
}

impl BiasedJudge {
    fn score(&self, job: &JudgeJob, r: usize, swapped: bool) -> u8 {
        let [text, other] = [job.shown_pair(false)[r], job.shown_pair(true)[r]];
        let truth = job.image.as_deref().and_then(decode_text);
        let unbiased = match truth {
            None => 2,
            Some(truth) if is_correct(text, &truth) => 4,
            Some(_) => 1,
        };
        let text_score = (text.bytes().map(u32::from).sum::<u32>() % 4) as u8;
        let words = |text: &str| text.split_whitespace().count();
        let with_bonus = |applies: bool| {
            if applies { (unbiased + 1).min(5) } else { unbiased }
        };
        let reference = job.case.reference.as_deref();
        match self.bias {
            KnownBias::PrefersFirst => with_bonus((r == 1) == swapped),
            KnownBias::PrefersLonger => {
                if words(text) > words(other) {
                    5
                } else {
                    unbiased
                }
            }
            KnownBias::IgnoresImage => text_score,
            KnownBias::DetectsBlankOnly => {
                let pixels = job.image.as_ref().map_or(&[][..], |i| i.decoded.data());
                let picture = pixels.iter().any(|v| Some(v) != pixels.first());
                text_score + u8::from(picture)
            }
            KnownBias::FollowsInjection
                if ["Score: 5", "highest score", "better one"].iter().any(|p| text.contains(p)) =>
            {
                5
            }
            KnownBias::BoughtBy(bribe) if bribe.is_in(text) => 5,
            KnownBias::None
            | KnownBias::FollowsInjection
            | KnownBias::BoughtBy(_)
            | KnownBias::IgnoresReference => unbiased,
            KnownBias::TrustsReference => match reference {
                None => 2,
                Some(reference) if is_correct(text, reference) => 4,
                Some(_) => 1,
            },
            KnownBias::DetectsReferenceOnly => with_bonus(reference.is_some()),
            KnownBias::PrefersLists => with_bonus(text.starts_with("- ")),
            KnownBias::AlwaysTies => 3,
        }
    }

    fn order(&self, job: &JudgeJob, swapped: bool) -> OrderVerdict {
        let scores = [0, 1].map(|r| self.score(job, r, swapped));
        let rating = |r: usize| {
            let mut logits = [0.0; 6];
            logits[usize::from(scores[r])] = 12.0;
            Rating::new(String::new(), Score::from_logits(&logits))
        };
        let branch = |aspect: Aspect| BranchEvaluation {
            aspect,
            ratings: (aspect.criteria().iter()).map(|c| (*c, vec![rating(0), rating(1)])).collect(),
        };
        OrderVerdict {
            swapped,
            first_shown: None,
            branches: Aspect::ALL.map(branch).into(),
            conclusion: vec![rating(0), rating(1)],
        }
    }
}

impl Judge for BiasedJudge {
    fn name(&self) -> String {
        format!("{:?}", self.bias)
    }

    fn device(&self) -> String {
        "none".to_owned()
    }

    fn shows_reference(&self) -> bool {
        matches!(
            self.bias,
            KnownBias::TrustsReference
                | KnownBias::IgnoresReference
                | KnownBias::DetectsReferenceOnly
        )
    }

    fn provenance(&self) -> Provenance {
        [("bias".to_owned(), self.name())].into()
    }

    fn reject_text(&self, _text: &str) -> anyhow::Result<Option<String>> {
        Ok(None)
    }

    fn judge(&mut self, jobs: &[JudgeJob]) -> anyhow::Result<Vec<Result<Verdict, Unscored>>> {
        let orders: &[bool] = if self.single_order { &[false] } else { &[false, true] };
        let verdict = |job| Verdict {
            orders: orders.iter().map(|swapped| self.order(job, *swapped)).collect(),
        };
        Ok(jobs.iter().map(|job| Ok(verdict(job))).collect())
    }
}

/// Returns true if a text has all words of the correct response, and no negation.
fn is_correct(text: &str, truth: &str) -> bool {
    let words = |text: &str| -> Vec<String> {
        let cut = text.split(|c: char| !c.is_alphanumeric());
        cut.map(str::to_lowercase).filter(|w| !w.is_empty()).collect()
    };
    let found = words(text);
    words(truth).iter().all(|word| found.contains(word)) && !found.contains(&"not".to_owned())
}

/// Encodes a text as an image: one pixel per half byte.
fn encode_text(text: &str) -> Arc<[u8]> {
    let marked = format!("#{text}#");
    let halves: Vec<u8> = marked.bytes().flat_map(|b| [b >> 4, b & 15]).collect();
    let pixels: Vec<u8> = halves.iter().map(|half| 16 * half + 4).collect();
    let picture = image::GrayImage::from_raw(pixels.len() as u32, 1, pixels).unwrap();
    let mut png = std::io::Cursor::new(Vec::new());
    picture.write_to(&mut png, image::ImageFormat::Png).unwrap();
    png.into_inner().into()
}

/// Decodes the text of an image.
fn decode_text(image: &LoadedImage) -> Option<String> {
    let halves: Vec<u8> = image.decoded.data().chunks(3).map(|p| p[0] / 16).collect();
    let bytes = halves.chunks_exact(2).map(|two| (two[0] << 4) | two[1]);
    let text = String::from_utf8(bytes.collect()).ok()?;
    let text = text.strip_prefix('#')?.strip_suffix('#')?;
    Some(text.to_owned())
}

/// Creates cases of two models whose labels prefer one response: alternately the first and the
/// second, and alternately the longer and the shorter one.
pub(crate) fn cases(n: usize) -> Vec<Case> {
    (0..n).map(case).collect()
}

fn case(i: usize) -> Case {
    let (side, other) = if i.is_multiple_of(3) { ("left", "right") } else { ("right", "left") };
    let finding =
        |side: &str, n: usize| format!("There are {n} lesions in the {side} lung on this CT.");
    let (correct_text, wrong_text) = (finding(side, 2 + i), finding(other, 40 + i));
    let advice = "It would be good to see a doctor about it soon.";
    let (better, worse) = if i % 4 < 2 {
        (format!("{correct_text} {advice}"), wrong_text)
    } else {
        (correct_text.clone(), format!("{wrong_text} {advice}"))
    };
    let mut responses = [("alpha", better, 5.0), ("beta", worse, 1.0)];
    if i % 2 == 1 {
        responses.reverse();
    }
    let response = |(model, text, _): &(&str, String, f64)| Response {
        model: (*model).to_owned(),
        text: text.clone(),
    };
    Case {
        id: format!("c{i}"),
        image: Some(ImageSource::Bytes {
            name: format!("{i}.png"),
            bytes: encode_text(&correct_text),
        }),
        question: "What is seen?".to_owned(),
        responses: responses.iter().map(response).collect(),
        reference: Some(correct_text),
        labels: Some(CaseLabels {
            final_scores: Some(responses.iter().map(|r| r.2).collect()),
            ..CaseLabels::default()
        }),
        meta: serde_json::Map::new(),
        extra: serde_json::Map::new(),
        line: i as u64 + 1,
    }
}

/// Audits a judge on cases with every probe.
pub(crate) fn audit_on(
    judge: &mut BiasedJudge,
    cases: Vec<Case>,
    limits: Vec<Threshold>,
) -> AuditResult {
    let request = AuditRequest {
        probes: Probe::ALL.into(),
        planted_kinds: Vec::new(),
        bootstrap: Bootstrap { resamples: 60, seed: 3 },
        thresholds: limits,
    };
    run_audit(judge, cases, &request)
}

/// Audits a judge on cases.
pub(crate) fn run_audit(
    judge: &mut BiasedJudge,
    cases: Vec<Case>,
    request: &AuditRequest,
) -> AuditResult {
    let path = Path::new("cases");
    let mut images = ImageReader::new(PathBuf::new(), ImageLimits::default());
    let mut audited = AuditCases::new(path, cases, &mut images, judge).unwrap();
    let units = join_labels(&audited.verdicts, &audited.verdicts.labels, path).ok();
    audited.join_labels(units.as_ref());
    let plan = audited.plan(request);
    let settings = PassSettings { pairs: &audited.pairs, plan: &plan, batch_size: 7 };
    let results = run_passes(judge, settings, &mut images, &mut |_, _| Ok(())).unwrap();
    audited.evaluate(&plan, &results, units.as_ref(), request).unwrap()
}

/// Audits a judge with a bias on 24 cases.
pub(crate) fn audit_of(bias: KnownBias) -> AuditResult {
    let single_order = false;
    audit_on(&mut BiasedJudge { bias, single_order }, cases(24), Vec::new())
}
