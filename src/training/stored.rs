//! What the frozen part of a model makes of preferences, computed once: by every epoch and every
//! member it is only read.

use std::ops::Range;
use std::path::{Path, PathBuf};

use acem3_experts::Error;
use acem3_experts::train::{Batch, Given, Parameters, Sequence, Student, on_device};
use anyhow::{Result, bail};
use candle::Tensor;

use super::contrast::Contrast;
use super::practice::{Lectern, drawn, fits};
use super::rows::{RowWriter, Rows};
use super::source::Source;
use super::stage_config::{Cut, StageConfig};
use crate::panel::MEMBERS;

/// Cases that are drawn and computed at a time.
const CHUNK: u64 = 64;

/// One preference: a case, and the two branches of its sequence.
#[derive(Clone, Copy, Debug)]
pub(super) struct Place {
    case: usize,
    branches: [u16; 2],
}

/// The preferences of a stage.
pub(super) struct Stored {
    cut: Cut,
    contrasts: Vec<Contrast>,
    /// Where the rows of each case begin.
    starts: Vec<usize>,
    /// How many of the cases are trained on; the others validate.
    trained: usize,
    rows: Option<Rows>,
    path: PathBuf,
}

impl Stored {
    /// Draws the preferences of a stage, and computes what its frozen part makes of them where that
    /// is not done yet. None when the person asked to stop.
    pub(super) fn prepare(
        lectern: Lectern,
        start: &Parameters,
        out: &Path,
    ) -> Result<Option<Self>> {
        let Lectern {
            config, settings, ..
        } = lectern;
        let Some(preferences) = &settings.preferences else {
            bail!("stage {}: it has no preferences", settings.name);
        };
        let cut = settings.cut(config.model.decoder.num_hidden_layers);
        let path = out.join(format!("{}.rows", settings.name));
        let mut stored = Self {
            cut,
            contrasts: Vec::new(),
            starts: Vec::new(),
            trained: 0,
            rows: Rows::open(&path)?,
            path,
        };
        let width = match cut {
            Cut::Trunk(_) => config.model.decoder.hidden_size,
            Cut::Features => config.model.vision.hidden_size,
            Cut::Pixels => 0,
        };
        let mut writer = match (cut, &stored.rows) {
            (Cut::Pixels, _) | (_, Some(_)) => None,
            _ => Some(RowWriter::create(&stored.path, preferences.store, width)?),
        };
        let vb = lectern.placed(start)?.builder();
        let student = Student::load(&vb, &config.model, stored.depth())?;
        let source = Source::open(lectern)?;
        let (learned, held) = source.numbers();
        for chunk in chunks(learned.clone()).chain(chunks(held)) {
            if lectern.live.interrupted() {
                return Ok(None);
            }
            let training = chunk.start < learned.end;
            if let (Some(_), true) = (&writer, training) {
                let state = format!(
                    "the frozen part is computed, {} of {} cases",
                    chunk.start, learned.end
                );
                lectern.live.report(&settings.name, 0, &state);
            }
            let cases = drawn(chunk, |number| source.contrasts(number))?;
            stored.add(
                lectern,
                &student,
                cases.into_iter().flatten(),
                writer.as_mut(),
            )?;
            if training {
                stored.trained = stored.contrasts.len();
            }
        }
        if let Some(writer) = writer {
            stored.rows = Some(writer.finish()?);
        }
        stored.check(settings)?;
        Ok(Some(stored))
    }

    /// Takes cases in, and writes their rows where they are wanted.
    fn add(
        &mut self,
        lectern: Lectern,
        student: &Student,
        cases: impl Iterator<Item = Contrast>,
        writer: Option<&mut RowWriter>,
    ) -> Result<()> {
        let context = lectern.config.model.decoder.max_position_embeddings;
        let fits = |case: &Contrast| fits(&case.sequence, context, lectern.live);
        let cases: Vec<Contrast> = cases.filter(fits).collect();
        if let Some(writer) = writer {
            let sequences: Vec<Sequence> = cases.iter().map(|c| c.sequence.clone()).collect();
            for rows in on_device(lectern.device, &sequences, |s| self.computed(student, s)) {
                if let Some(rows) = rows? {
                    writer.push(&rows)?;
                }
            }
        }
        for mut case in cases {
            let last = self.starts.last().copied().unwrap_or(0);
            let before = self
                .contrasts
                .last()
                .map_or(0, |c| self.rows_of(&c.sequence, student));
            self.starts.push(last + before);
            if self.cut != Cut::Pixels {
                case.sequence.given = Given::Text;
            }
            self.contrasts.push(case);
        }
        Ok(())
    }

    /// What the frozen part makes of a case.
    fn computed(&self, student: &Student, sequence: &Sequence) -> Result<Option<Tensor>, Error> {
        match (self.cut, &sequence.given) {
            (Cut::Trunk(_), _) => {
                let batch = [sequence.clone()];
                Ok(student.trunk_top(&Batch(&batch))?.pop())
            }
            (Cut::Features, Given::Pixels(pixels)) => {
                let features = student.features(std::slice::from_ref(pixels))?;
                Ok(Some(features.detach().squeeze(0)?))
            }
            _ => Ok(None),
        }
    }

    /// How many rows a case has.
    fn rows_of(&self, sequence: &Sequence, student: &Student) -> usize {
        match self.cut {
            Cut::Trunk(_) => sequence.len(),
            Cut::Features if sequence.image_at.is_some() => student.image_rows(),
            Cut::Features | Cut::Pixels => 0,
        }
    }

    /// Every member that learns must have something to learn from, and something to validate by.
    fn check(&self, settings: &StageConfig) -> Result<()> {
        for member in settings.member_places() {
            let (learned, held) = self.places(Some(member));
            if learned.is_empty() || held.is_empty() {
                bail!(
                    "stage {}: {} of {} preferences of {} validate, which leaves too few\n\
                     hint: give more `cases` or a longer `file` in [stages.preferences], other \
                     `negatives`, or name the members that learn in `members`",
                    settings.name,
                    held.len(),
                    learned.len() + held.len(),
                    MEMBERS[member]
                );
            }
        }
        Ok(())
    }

    /// Layers of the decoder that the frozen part has.
    pub(super) fn depth(&self) -> usize {
        match self.cut {
            Cut::Trunk(depth) => depth,
            Cut::Features | Cut::Pixels => 0,
        }
    }

    /// The preferences of a member, or of all: those to learn, and those that validate.
    pub(super) fn places(&self, member: Option<usize>) -> (Vec<Place>, Vec<Place>) {
        let of = |cases: Range<usize>| {
            let cases = cases.flat_map(|case| {
                let members = self.contrasts[case].members.iter().enumerate();
                let wanted = members.filter(move |(_, m)| member.is_none_or(|only| only == **m));
                wanted.map(move |(i, _)| Place {
                    case,
                    branches: Contrast::branches(i),
                })
            });
            cases.collect()
        };
        (of(0..self.trained), of(self.trained..self.contrasts.len()))
    }

    /// The sequence of a preference: branch 1 is preferred, branch 2 rejected.
    pub(super) fn sequence(&self, place: Place) -> Result<Sequence> {
        let whole = &self.contrasts[place.case].sequence;
        let (mut part, kept) = whole.part(&place.branches)?;
        let start = self.starts[place.case];
        match (self.cut, &self.rows) {
            (Cut::Trunk(_), Some(rows)) => {
                let kept = kept.into_iter().map(|place| start + place as usize);
                part.given = Given::Hidden(rows.at(kept)?);
            }
            (Cut::Features, Some(rows)) if part.image_at.is_some() => {
                let end = self
                    .starts
                    .get(place.case + 1)
                    .copied()
                    .unwrap_or(rows.len());
                part.given = Given::Features(rows.at(start..end)?);
            }
            _ => {}
        }
        Ok(part)
    }

    /// Removes what was computed.
    pub(super) fn remove(self) -> Result<()> {
        match self.rows {
            Some(rows) => rows.remove(&self.path),
            None => Ok(()),
        }
    }
}

fn chunks(cases: Range<u64>) -> impl Iterator<Item = Range<u64>> {
    let starts = cases.clone().step_by(CHUNK as usize);
    starts.map(move |at| at..(at + CHUNK).min(cases.end))
}
