//! Judges whose habits are known, and cases that they can judge: the image of each holds the right answer.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use acem3::analysis::agreement::join_labels;
use acem3::analysis::audit::{
    AuditCases, AuditRequest, AuditResult, PassSettings, Probe, Threshold, run_passes,
};
use acem3::data::cases::{Case, CaseLabels, ImageSource, Response};
use acem3::data::images::{ImageReader, LoadedImage};
use acem3::judging::judge::{Judge, PairJob, Unscored};
use acem3::judging::provenance::Provenance;
use acem3::statistics::Bootstrap;
use acem3_conclusion::{OrderVerdict, Verdict};
use acem3_experts::{Aspect, BranchEvaluation, Rating, Score};
use acem3_vision::Limits;

/// What a judge gives way to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Habit {
    /// Nothing: it reads the right answer in the image.
    None,
    /// What is shown first gets a point more.
    First,
    /// The longer answer gets a point more.
    Long,
    /// It does not look: it has opinions on words.
    Blind,
    /// It looks, and tells a blank image from a picture, but not what is on it.
    Glance,
    /// It gives what it is asked for.
    Gullible,
    /// Lists get a point more.
    Lists,
    /// Everything gets a three.
    Indifferent,
}

/// A judge with a habit.
pub(crate) struct Biased {
    pub(crate) habit: Habit,
    pub(crate) single_order: bool,
}

impl Biased {
    fn score(&self, job: &PairJob, r: usize, swapped: bool) -> u8 {
        let [text, other] = [job.responses()[r], job.responses()[1 - r]];
        let truth = job.image.as_deref().and_then(told);
        let fair = match truth {
            None => 2,
            Some(truth) if says(text, &truth) => 4,
            Some(_) => 1,
        };
        let opinion = (text.bytes().map(u32::from).sum::<u32>() % 4) as u8;
        let words = |text: &str| text.split_whitespace().count();
        let more = |is: bool| if is { (fair + 1).min(5) } else { fair };
        match self.habit {
            Habit::First => more((r == 1) == swapped),
            Habit::Long => {
                if words(text) > words(other) {
                    5
                } else {
                    fair
                }
            }
            Habit::Blind => opinion,
            Habit::Glance => {
                let pixels = job.image.as_ref().map_or(&[][..], |i| i.decoded.data());
                let picture = pixels.iter().any(|v| Some(v) != pixels.first());
                opinion + u8::from(picture)
            }
            Habit::Gullible
                if ["Score: 5", "highest score", "better one"]
                    .iter()
                    .any(|p| text.contains(p)) =>
            {
                5
            }
            Habit::None | Habit::Gullible => fair,
            Habit::Lists => more(text.starts_with("- ")),
            Habit::Indifferent => 3,
        }
    }

    fn order(&self, job: &PairJob, swapped: bool) -> OrderVerdict {
        let rating = |r: usize| {
            let mut logits = [0.0; 6];
            logits[usize::from(self.score(job, r, swapped))] = 12.0;
            Rating {
                analysis: String::new(),
                cut: false,
                score: Score::from_logits(logits),
            }
        };
        let branch = |aspect: Aspect| BranchEvaluation {
            aspect,
            ratings: (aspect.criteria().iter())
                .map(|c| (*c, [rating(0), rating(1)]))
                .collect(),
        };
        OrderVerdict {
            swapped,
            branches: Aspect::ALL.map(branch).into(),
            conclusion: [rating(0), rating(1)],
        }
    }
}

impl Judge for Biased {
    fn name(&self) -> String {
        format!("{:?}", self.habit)
    }

    fn device(&self) -> String {
        "none".to_owned()
    }

    fn provenance(&self) -> Provenance {
        [("habit".to_owned(), self.name())].into()
    }

    fn judge(&mut self, jobs: &[PairJob]) -> anyhow::Result<Vec<Result<Verdict, Unscored>>> {
        let orders: &[bool] = if self.single_order {
            &[false]
        } else {
            &[false, true]
        };
        let verdict = |job| Verdict {
            orders: orders
                .iter()
                .map(|swapped| self.order(job, *swapped))
                .collect(),
        };
        Ok(jobs.iter().map(|job| Ok(verdict(job))).collect())
    }
}

/// Whether a text says all that the truth says, and denies nothing that it does not.
fn says(text: &str, truth: &str) -> bool {
    let words = |text: &str| -> Vec<String> {
        let cut = text.split(|c: char| !c.is_alphanumeric());
        cut.map(str::to_lowercase)
            .filter(|w| !w.is_empty())
            .collect()
    };
    let said = words(text);
    words(truth).iter().all(|word| said.contains(word)) && !said.contains(&"not".to_owned())
}

/// An image that says something to those who can read it: a pixel for each half of a byte.
fn picture(text: &str) -> Arc<[u8]> {
    let marked = format!("#{text}#");
    let halves: Vec<u8> = marked.bytes().flat_map(|b| [b >> 4, b & 15]).collect();
    let pixels: Vec<u8> = halves.iter().map(|half| 16 * half + 4).collect();
    let picture = image::GrayImage::from_raw(pixels.len() as u32, 1, pixels).unwrap();
    let mut png = std::io::Cursor::new(Vec::new());
    picture.write_to(&mut png, image::ImageFormat::Png).unwrap();
    png.into_inner().into()
}

/// What an image says.
fn told(image: &LoadedImage) -> Option<String> {
    let halves: Vec<u8> = image.decoded.data().chunks(3).map(|p| p[0] / 16).collect();
    let bytes = halves.chunks_exact(2).map(|two| (two[0] << 4) | two[1]);
    let text = String::from_utf8(bytes.collect()).ok()?;
    let text = text.strip_prefix('#')?.strip_suffix('#')?;
    Some(text.to_owned())
}

/// Cases of two models, of whose answers the labels know the better one: in turn the first and the
/// second, in turn the longer and the shorter.
pub(crate) fn cases(n: usize) -> Vec<Case> {
    (0..n).map(case).collect()
}

fn case(i: usize) -> Case {
    let (side, other) = if i.is_multiple_of(3) {
        ("left", "right")
    } else {
        ("right", "left")
    };
    let said =
        |side: &str, n: usize| format!("There are {n} lesions in the {side} lung on this CT.");
    let (right, wrong) = (said(side, 2 + i), said(other, 40 + i));
    let care = "It would be good to see a doctor about it soon.";
    let (better, worse) = if i % 4 < 2 {
        (format!("{right} {care}"), wrong)
    } else {
        (right.clone(), format!("{wrong} {care}"))
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
            bytes: picture(&right),
        }),
        question: "What is seen?".to_owned(),
        responses: responses.iter().map(response).collect(),
        reference: Some(right),
        labels: Some(CaseLabels {
            last: Some(responses.iter().map(|r| r.2).collect()),
            ..CaseLabels::default()
        }),
        meta: serde_json::Map::new(),
        extra: serde_json::Map::new(),
        line: i as u64 + 1,
    }
}

/// Audits a judge on some cases.
pub(crate) fn audit_on(
    judge: &mut Biased,
    cases: Vec<Case>,
    limits: Vec<Threshold>,
) -> AuditResult {
    let asked = AuditRequest {
        probes: Probe::ALL.into(),
        bootstrap: Bootstrap { draws: 60, seed: 3 },
        limits,
    };
    let path = Path::new("cases");
    let mut images = ImageReader::new(PathBuf::new(), Limits::default());
    let mut subject = AuditCases::new(path, cases, &mut images, judge).unwrap();
    let units = join_labels(&subject.verdicts, &subject.verdicts.labels, path).ok();
    subject.join_labels(units.as_ref());
    let plan = subject.plan(&asked);
    let settings = PassSettings {
        pairs: &subject.pairs,
        plan: &plan,
        batch_size: 7,
    };
    let results = run_passes(judge, settings, &mut images, &mut |_, _| Ok(())).unwrap();
    subject
        .evaluate(&plan, &results, units.as_ref(), &asked)
        .unwrap()
}

/// Audits a judge with a habit on some cases.
pub(crate) fn audit_of(habit: Habit) -> AuditResult {
    let single_order = false;
    audit_on(
        &mut Biased {
            habit,
            single_order,
        },
        cases(24),
        Vec::new(),
    )
}
