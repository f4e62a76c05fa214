//! Judges the cases of a preference stage with the panel as it is before the stage.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result};

use crate::checkpoints::hub::HubDownloads;
use crate::checkpoints::panel::files::PanelFiles;
use crate::data::images::derived::image_from_pixels;
use crate::judging::panel::{JudgeOptions, Panel, PanelJudge, PanelOptions};
use crate::support::device::Placement;
use crate::support::files::atomic_file;
use crate::training::config::validation_indices::{VALIDATION_EXAMPLES, VALIDATION_START};
use crate::training::examples::example::PairExample;
use crate::training::measurement::test_pair::{
    ImageCondition, TestImage, TestPair, judge_first_pairs,
};
use crate::training::preferences::own_evaluations::OwnEvaluations;
use crate::training::stages::context::StageContext;
use crate::training::stages::files::export::{ExportFolders, export};
use crate::training::stages::files::member_state::MemberState;
use crate::training::stages::files::stage_files::{
    OWN_EXTENSION, PANEL_EXTENSION, remove_panel, stage_file,
};

/// Returns the evaluations that the panel writes about the cases of a stage, or reads them if an earlier
/// run wrote them. Returns `None` if the user interrupts the judging.
///
/// # Errors
/// If the panel cannot be written, loaded or run, or a file cannot be written.
pub(crate) fn own_evaluations(
    context: StageContext,
    members: &[MemberState; 4],
    out: &Path,
) -> Result<Option<OwnEvaluations>> {
    let name = &context.stage.name;
    let path = stage_file(out, name, OWN_EXTENSION);
    if path.exists() {
        let text = fs::read(&path).with_context(|| format!("cannot read {}", path.display()))?;
        let own = serde_json::from_slice(&text)
            .with_context(|| format!("{}\nhint: delete the file and run again", path.display()))?;
        return Ok(Some(own));
    }
    let folder = stage_file(out, name, PANEL_EXTENSION);
    export(context.config, members, ExportFolders { run: out, panel: &folder })?;
    let placement = Placement { device: context.device.clone(), ..Placement::cpu() };
    let files = PanelFiles::Folder(folder);
    let panel = Panel::load(&files, PanelOptions::default(), &placement, HubDownloads::default())?;
    let mut judge = PanelJudge::new(panel, JudgeOptions::most_probable())?;
    let Some(own) = judge_cases(context, &mut judge)? else {
        return Ok(None);
    };
    let text = serde_json::to_vec(&own).context("cannot write the evaluations")?;
    atomic_file::write_atomic(&path, &text)?;
    remove_panel(out, name)?;
    Ok(Some(own))
}

fn judge_cases(context: StageContext, judge: &mut PanelJudge) -> Result<Option<OwnEvaluations>> {
    let StageContext { stage, sampler, progress, .. } = context;
    let cases = stage.preferences.as_ref().map_or(0, |preferences| preferences.cases);
    let validation = VALIDATION_START..VALIDATION_START + VALIDATION_EXAMPLES;
    let indices: Vec<u64> = (0..cases).chain(validation).collect();
    let pairs = indices.iter().map(|index| {
        let example = sampler.preference_example(stage, *index)?;
        test_pair(context, *index, example.pair)
    });
    let pairs: Vec<TestPair> = pairs.collect::<Result<_>>()?;
    let mut judged = 0;
    let verdicts = judge_first_pairs(judge, &pairs, ImageCondition::Original, &mut |batch| {
        judged += batch.pairs();
        let state = format!("judging the cases, {judged} of {}", pairs.len());
        progress.report(&stage.name, 0, &state);
        !progress.is_interrupted()
    })?;
    if verdicts.len() < pairs.len() {
        return Ok(None);
    }
    let mut own = OwnEvaluations::default();
    let (mut unscored, mut first) = (0, None);
    for (index, verdict) in indices.iter().zip(&verdicts) {
        match verdict {
            Ok(verdict) => own.add(*index, verdict),
            // Such as a pair that is too long for the panel. It gives no preference pair.
            Err(reason) => {
                unscored += 1;
                first.get_or_insert(reason);
            }
        }
    }
    if let Some(reason) = first {
        progress.note(&format!(
            "{}: {unscored} of {} cases have no verdict, first: {}",
            stage.name,
            pairs.len(),
            reason.message
        ));
    }
    Ok(Some(own))
}

/// Returns the pair of an example with its image as the panel sees it.
fn test_pair(context: StageContext, index: u64, pair: PairExample) -> Result<TestPair> {
    let images = context.sampler.images();
    let image = match &pair.image {
        Some(image) => {
            let decoded = images.to_image(image).context(
                "own requires a model that encodes an image at once, without tiles\n\
                 hint: remove `own` from [stages.preferences]",
            )?;
            TestImage::Decoded(image_from_pixels("example", decoded))
        }
        None => TestImage::None,
    };
    let [first, second] = pair.responses;
    Ok(TestPair {
        cluster: index.to_string(),
        image,
        question: pair.question,
        responses: [first.text, second.text],
    })
}
