//! Panels in folders: copies of the embedded panel, intact and damaged.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use acem3::checkpoints::hub::HubDownloads;
use acem3::checkpoints::panel::files::PanelFiles;
use acem3::data::cases;
use acem3::data::cases::SourceOptions;
use acem3::data::images::ImageReader;
use acem3::judging::judge::{Judge, JudgeJob};
use acem3::judging::panel::{JudgeOptions, Panel, PanelJudge, PanelOptions};
use acem3::support::device::Placement;
use acem3_vision::ImageLimits;
use candle::DType;
use candle::quantized::GgmlDType;
use tempfile::TempDir;

/// Copies the embedded panel to a temporary folder.
pub(crate) fn copy_panel() -> TempDir {
    let dir = TempDir::new().unwrap();
    let mini = Path::new(env!("CARGO_MANIFEST_DIR")).join("assets/mini");
    for entry in fs::read_dir(mini).unwrap() {
        let path = entry.unwrap().path();
        fs::copy(&path, dir.path().join(path.file_name().unwrap())).unwrap();
    }
    dir
}

/// Damages a copy of the panel, loads it and returns the error with its causes.
fn error_after(damage: impl Fn(&Path)) -> String {
    let dir = copy_panel();
    damage(dir.path());
    let files = PanelFiles::Folder(dir.path().to_owned());
    match Panel::load(&files, PanelOptions::default(), &Placement::cpu(), HubDownloads::default()) {
        Ok(_) => panic!("the damaged panel was loaded"),
        Err(error) => format!("{error:#}"),
    }
}

/// Replaces text in `panel.toml`.
pub(crate) fn edit_spec(dir: &Path, from: &str, to: &str) {
    let path = dir.join("panel.toml");
    let text = fs::read_to_string(&path).unwrap();
    assert!(text.contains(from), "panel.toml has no {from}");
    fs::write(path, text.replacen(from, to, 1)).unwrap();
}

/// Removes the last `removed` bytes of a file.
fn truncate(path: PathBuf, removed: usize) {
    let bytes = fs::read(&path).unwrap();
    fs::write(path, &bytes[..bytes.len() - removed.min(bytes.len())]).unwrap();
}

#[test]
fn copied_panel_has_equal_provenance() {
    let dir = copy_panel();
    let load = |files: &PanelFiles| {
        let panel =
            Panel::load(files, PanelOptions::default(), &Placement::cpu(), HubDownloads::default())
                .unwrap();
        assert!(panel.trunk_layers() > 0, "the members share no layers");
        PanelJudge::new(panel, JudgeOptions::default()).unwrap().provenance()
    };
    let folder = PanelFiles::Folder(dir.path().to_owned());
    assert_eq!(load(&folder), load(&PanelFiles::Embedded));
}

#[test]
fn changed_weight_or_setting_changes_name() {
    let name = |dir: &Path| {
        let files = PanelFiles::Folder(dir.to_owned());
        let panel = Panel::load(
            &files,
            PanelOptions::default(),
            &Placement::cpu(),
            HubDownloads::default(),
        )
        .unwrap();
        let options = JudgeOptions::default();
        PanelJudge::new(panel, options).unwrap().name()
    };
    let original = copy_panel();
    let changed_weight = copy_panel();
    let path = changed_weight.path().join("trunk.safetensors");
    let mut bytes = fs::read(&path).unwrap();
    // Flips the sign of the last half-precision number.
    *bytes.last_mut().unwrap() ^= 0x80;
    fs::write(path, bytes).unwrap();
    let changed_setting = copy_panel();
    // Inserts a digit: 48 becomes 148.
    edit_spec(changed_setting.path(), "analysis_tokens = ", "analysis_tokens = 1");
    let names = [original, changed_weight, changed_setting].map(|dir| name(dir.path()));
    assert_ne!(names[0], names[1]);
    assert_ne!(names[0], names[2]);
    assert_ne!(names[1], names[2]);
}

/// Returns the expected scores of three demo cases by the panel in this dtype.
fn expected_scores(dtype: DType) -> Vec<Vec<f64>> {
    scores_on(&Placement { dtype, ..Placement::cpu() }, None)
}

/// Returns the expected scores of three demo cases, with at most this memory for texts.
fn scores_on(placement: &Placement, memory: Option<u64>) -> Vec<Vec<f64>> {
    let panel = load_panel(placement).with_memory(memory);
    scores(&mut PanelJudge::new(panel, JudgeOptions::default()).unwrap())
}

fn load_panel(placement: &Placement) -> Panel {
    let options = PanelOptions::default();
    Panel::load(&PanelFiles::Embedded, options, placement, HubDownloads::default()).unwrap()
}

/// Returns the expected scores of three demo cases.
fn scores(judge: &mut dyn Judge) -> Vec<Vec<f64>> {
    let verdicts = judge.judge(&demo_jobs()).unwrap();
    let verdicts = verdicts.into_iter().map(Result::unwrap);
    verdicts.map(|verdict| verdict.expected_scores()).collect()
}

/// Returns the jobs of three demo cases.
fn demo_jobs() -> Vec<JudgeJob> {
    let demo = Path::new(env!("CARGO_MANIFEST_DIR")).join("assets/demo");
    let mut images = ImageReader::new(demo.clone(), ImageLimits::default());
    let cases = cases::open(&demo, &SourceOptions::default()).unwrap();
    let job = |case: cases::Case| JudgeJob {
        image: Some(images.load(case.image.as_ref().unwrap()).unwrap()),
        case: case.into(),
        responses: vec![0, 1],
    };
    cases.flatten().take(3).map(job).collect()
}

/// The files of the embedded panel are f16, so f16 in memory gives bit-identical results. bf16 has
/// three bits less of precision.
#[test]
fn f16_is_exact_and_bf16_is_close() {
    let exact_scores = expected_scores(DType::F32);
    assert_eq!(expected_scores(DType::F16), exact_scores);
    let bf16_scores = expected_scores(DType::BF16);
    let pairs = bf16_scores.iter().flatten().zip(exact_scores.iter().flatten());
    for (rounded, exact) in pairs {
        assert!((rounded - exact).abs() < 0.5, "{rounded} for {exact}");
    }
    assert_ne!(bf16_scores, exact_scores);
}

/// With one text at a time, products have other numbers of inputs, and other instructions.
#[test]
fn bf16_scores_do_not_depend_on_the_batch() {
    let placement = Placement { dtype: DType::BF16, ..Placement::cpu() };
    assert_eq!(scores_on(&placement, Some(1)), scores_on(&placement, None));
}

#[test]
fn provenance_names_rounded_inputs() {
    let provenance_of = |placement: &Placement| {
        PanelJudge::new(load_panel(placement), JudgeOptions::default()).unwrap().provenance()
    };
    let products_of = |placement: &Placement| provenance_of(placement).get("products").cloned();
    let bf16 = Placement { dtype: DType::BF16, ..Placement::cpu() };
    assert_eq!(products_of(&bf16).as_deref(), Some("inputs of bf16 weights in bf16"));
    assert_eq!(products_of(&Placement::cpu()), None);
    let quantised = Placement { blocks: Some(GgmlDType::Q8_0), ..Placement::cpu() };
    let vision_of = |placement: &Placement| provenance_of(placement).get("vision").cloned();
    assert_eq!(vision_of(&quantised).as_deref(), Some("layers in q8_0"));
    assert_eq!(vision_of(&Placement::cpu()), None);
}

/// Quantised weights move scores a little.
#[test]
fn q8_0_is_close() {
    let blocks = Some(GgmlDType::Q8_0);
    let scores = scores_on(&Placement { blocks, ..Placement::cpu() }, None);
    let exact_scores = expected_scores(DType::F32);
    for (rounded, exact) in scores.iter().flatten().zip(exact_scores.iter().flatten()) {
        assert!((rounded - exact).abs() < 0.5, "{rounded} for {exact}");
    }
    assert_ne!(scores, exact_scores);
}

#[test]
fn matrices_that_do_not_fit_blocks_are_named() {
    let placement = Placement { blocks: Some(GgmlDType::Q4K), ..Placement::cpu() };
    let loaded = Panel::load(
        &PanelFiles::Embedded,
        PanelOptions::default(),
        &placement,
        HubDownloads::default(),
    );
    let error = format!("{:#}", loaded.err().unwrap());
    assert!(error.contains("rows of 192 values") && error.contains("--dtype q8_0"), "{error}");
}

/// Two copies get two jobs and one.
#[test]
fn copies_of_a_panel_share_the_jobs() {
    let on_devices = |copies| PanelJudge::on_devices(copies, JudgeOptions::default(), 2);
    let load = |_| load_panel(&Placement::cpu());
    let single_name = PanelJudge::new(load(0), JudgeOptions::default()).unwrap().name();
    let mut judge = on_devices(vec![load(0), load(1)]).unwrap();
    assert_eq!(judge.name(), single_name);
    assert_eq!(judge.device().split(", cpu").count(), 2);
    assert_eq!(scores(&mut judge), expected_scores(DType::F32));
    let other = Placement { dtype: DType::BF16, ..Placement::cpu() };
    let different = vec![load(0), load_panel(&other)];
    let error = on_devices(different).err().unwrap().to_string();
    assert!(error.contains("differ"), "{error}");
}

/// Jobs that start while others are in progress have the verdicts of jobs that start together. Cancelled
/// jobs never finish, and do not disturb later ones.
#[test]
fn jobs_may_start_at_any_time_and_be_cancelled() {
    let panel = load_panel(&Placement::cpu());
    let mut judge = PanelJudge::new(panel, JudgeOptions::default()).unwrap();
    let jobs = demo_jobs();
    let queue = judge.queue().unwrap();
    for (number, job) in (0..).zip(&jobs) {
        queue.submit(number, job.clone());
    }
    assert_eq!(queue.cancel_unsent(), jobs.len());
    assert!(queue.next_finished(Duration::ZERO).unwrap().is_none());
    let mut found = Vec::new();
    for (number, job) in (10..).zip(&jobs) {
        queue.submit(number, job.clone());
        found.extend(queue.next_finished(Duration::from_millis(20)).unwrap());
    }
    while let Some(finished) = queue.next_finished(Duration::from_mins(1)).unwrap() {
        found.push(finished);
    }
    found.sort_by_key(|finished| finished.number);
    let numbers: Vec<u64> = found.iter().map(|finished| finished.number).collect();
    assert_eq!(numbers, [10, 11, 12]);
    let found = found.into_iter().map(|finished| finished.result.unwrap().expected_scores());
    assert_eq!(found.collect::<Vec<_>>(), expected_scores(DType::F32));
}

/// With little memory, texts wait for each other. Their scores do not change.
#[test]
fn memory_limits_do_not_change_scores() {
    let limited = scores_on(&Placement::cpu(), Some(1 << 20));
    assert_eq!(limited, expected_scores(DType::F32));
}

#[test]
fn error_names_the_damaged_file() {
    let missing = error_after(|dir| fs::remove_file(dir.join("conclusion.safetensors")).unwrap());
    assert!(missing.contains("conclusion.safetensors"), "{missing}");
    let short = error_after(|dir| truncate(dir.join("trunk.safetensors"), 1000));
    assert!(short.contains("trunk.safetensors") && short.contains("incomplete"), "{short}");
    let torn = error_after(|dir| truncate(dir.join("tokenizer.json"), 1000));
    assert!(torn.contains("tokenizer.json"), "{torn}");
    let unknown = error_after(|dir| edit_spec(dir, "schema = 1", "schema = 1\nsurplus = 2"));
    assert!(unknown.contains("panel.toml") && unknown.contains("surplus"), "{unknown}");
    let schema = error_after(|dir| edit_spec(dir, "schema = 1", "schema = 7"));
    assert!(schema.contains("schema is 7, expected 1"), "{schema}");
    let outside = error_after(|dir| edit_spec(dir, "\"expression.safetensors\"", "\"../x\""));
    assert!(outside.contains("`../x`, expected the name of a file"), "{outside}");
}

#[test]
fn invalid_sizes_are_rejected_on_load() {
    let layers =
        error_after(|dir| edit_spec(dir, "intermediate_size = 512", "intermediate_size = 500"));
    assert!(layers.contains("panel.toml") && layers.contains("shape"), "{layers}");
    let image = error_after(|dir| edit_spec(dir, "height = 96", "height = 64"));
    assert!(image.contains("panel.toml"), "{image}");
    let context = error_after(|dir| {
        edit_spec(dir, "max_position_embeddings = 1024", "max_position_embeddings = 99999999999");
    });
    assert!(context.contains("max_position_embeddings is 99999999999"), "{context}");
    let eps = error_after(|dir| edit_spec(dir, "rms_norm_eps = 0.00001", "rms_norm_eps = -1.0"));
    assert!(eps.contains("rms_norm_eps"), "{eps}");
    let surplus = error_after(|dir| {
        edit_spec(
            dir,
            "num_hidden_layers = 6\nnum_attention_heads = 6\nnum_key",
            "num_hidden_layers = 5\nnum_attention_heads = 6\nnum_key",
        );
    });
    assert!(surplus.contains("unused tensor") && surplus.contains("model.layers.5."), "{surplus}");
}
