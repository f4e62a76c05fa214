//! Panels from folders: the embedded one copied out, whole and damaged.

use std::fs;
use std::path::{Path, PathBuf};

use acem3::checkpoints::hub::Downloads;
use acem3::checkpoints::panel::files::PanelFiles;
use acem3::data::cases;
use acem3::data::cases::SourceOptions;
use acem3::data::images::ImageReader;
use acem3::judging::judge::{Judge, PairJob};
use acem3::judging::panel::{JudgeOptions, Panel, PanelJudge};
use acem3::support::device::Placement;
use acem3_vision::Limits;
use candle::{DType, Device};
use tempfile::TempDir;

/// A copy of the embedded panel's files.
fn copy() -> TempDir {
    let dir = TempDir::new().unwrap();
    let mini = Path::new(env!("CARGO_MANIFEST_DIR")).join("assets/mini");
    for entry in fs::read_dir(mini).unwrap() {
        let path = entry.unwrap().path();
        fs::copy(&path, dir.path().join(path.file_name().unwrap())).unwrap();
    }
    dir
}

/// Loads the copy after `damage`, and gives the whole chain of its error.
fn error_after(damage: impl Fn(&Path)) -> String {
    let dir = copy();
    damage(dir.path());
    let files = PanelFiles::Folder(dir.path().to_owned());
    match Panel::load(&files, false, &Placement::cpu(), Downloads::default()) {
        Ok(_) => panic!("the damaged panel was loaded"),
        Err(error) => format!("{error:#}"),
    }
}

fn edit(dir: &Path, from: &str, to: &str) {
    let path = dir.join("panel.toml");
    let text = fs::read_to_string(&path).unwrap();
    assert!(text.contains(from), "panel.toml has no {from}");
    fs::write(path, text.replacen(from, to, 1)).unwrap();
}

fn truncate(path: PathBuf, keep: usize) {
    let bytes = fs::read(&path).unwrap();
    fs::write(path, &bytes[..bytes.len() - keep.min(bytes.len())]).unwrap();
}

#[test]
fn a_folder_with_the_same_files_is_the_same_judge() {
    let dir = copy();
    let load = |files: &PanelFiles| {
        let panel = Panel::load(files, false, &Placement::cpu(), Downloads::default()).unwrap();
        assert!(panel.trunk_layers() > 0, "the members share no layers");
        PanelJudge::new(
            panel,
            JudgeOptions {
                single_order: false,
            },
        )
        .provenance()
    };
    let folder = PanelFiles::Folder(dir.path().to_owned());
    assert_eq!(load(&folder), load(&PanelFiles::Embedded));
}

#[test]
fn another_weight_or_word_is_another_name() {
    let name = |dir: &Path| {
        let files = PanelFiles::Folder(dir.to_owned());
        let panel = Panel::load(&files, false, &Placement::cpu(), Downloads::default()).unwrap();
        let options = JudgeOptions {
            single_order: false,
        };
        PanelJudge::new(panel, options).name()
    };
    let before = copy();
    let weight = copy();
    let path = weight.path().join("conclusion.safetensors");
    let mut bytes = fs::read(&path).unwrap();
    // The last byte belongs to a half-precision number; its sign alone is changed.
    *bytes.last_mut().unwrap() ^= 0x80;
    fs::write(path, bytes).unwrap();
    let word = copy();
    edit(word.path(), "analysis_tokens = ", "analysis_tokens = 1");
    let names = [before, weight, word].map(|dir| name(dir.path()));
    assert_ne!(names[0], names[1]);
    assert_ne!(names[0], names[2]);
    assert_ne!(names[1], names[2]);
}

/// The expected scores of the first cases of the demo, by a panel whose matrices are kept in a type.
fn expected(dtype: DType) -> Vec<[f64; 2]> {
    let place = Placement {
        device: Device::Cpu,
        dtype,
    };
    let panel = Panel::load(&PanelFiles::Embedded, false, &place, Downloads::default()).unwrap();
    let options = JudgeOptions {
        single_order: false,
    };
    let demo = Path::new(env!("CARGO_MANIFEST_DIR")).join("assets/demo");
    let mut images = ImageReader::new(demo.clone(), Limits::default());
    let cases = cases::open(&demo, &SourceOptions::default()).unwrap();
    let job = |case: cases::Case| PairJob {
        image: Some(images.load(case.image.as_ref().unwrap()).unwrap()),
        case: case.into(),
        pair: [0, 1],
    };
    let jobs: Vec<PairJob> = cases.flatten().take(3).map(job).collect();
    let verdicts = PanelJudge::new(panel, options).judge(&jobs).unwrap();
    let verdicts = verdicts.into_iter().map(Result::unwrap);
    verdicts.map(|verdict| verdict.expected()).collect()
}

/// The embedded panel is stored in f16: kept so, it computes the same to the bit. In bf16 an eighth of
/// the digits is left.
#[test]
fn matrices_in_half_types_give_the_values_they_hold() {
    let whole = expected(DType::F32);
    assert_eq!(expected(DType::F16), whole);
    let rough = expected(DType::BF16);
    for (rough, whole) in rough.iter().flatten().zip(whole.iter().flatten()) {
        assert!((rough - whole).abs() < 0.5, "{rough} for {whole}");
    }
    assert_ne!(rough, whole);
}

#[test]
fn damage_is_named() {
    let missing = error_after(|dir| fs::remove_file(dir.join("conclusion.safetensors")).unwrap());
    assert!(missing.contains("conclusion.safetensors"), "{missing}");
    let short = error_after(|dir| truncate(dir.join("trunk.safetensors"), 1000));
    assert!(
        short.contains("trunk.safetensors") && short.contains("incomplete"),
        "{short}"
    );
    let torn = error_after(|dir| truncate(dir.join("tokenizer.json"), 1000));
    assert!(torn.contains("tokenizer.json"), "{torn}");
    let unknown = error_after(|dir| edit(dir, "schema = 1", "schema = 1\nsurplus = 2"));
    assert!(
        unknown.contains("panel.toml") && unknown.contains("surplus"),
        "{unknown}"
    );
    let schema = error_after(|dir| edit(dir, "schema = 1", "schema = 7"));
    assert!(schema.contains("schema is 7, expected 1"), "{schema}");
    let outside = error_after(|dir| edit(dir, "\"expression.safetensors\"", "\"../x\""));
    assert!(
        outside.contains("`../x`, expected the name of a file"),
        "{outside}"
    );
}

#[test]
fn sizes_that_do_not_fit_are_found_before_the_first_case() {
    let layers = error_after(|dir| edit(dir, "intermediate_size = 512", "intermediate_size = 500"));
    assert!(
        layers.contains("panel.toml") && layers.contains("shape"),
        "{layers}"
    );
    let image = error_after(|dir| edit(dir, "height = 96", "height = 64"));
    assert!(image.contains("panel.toml"), "{image}");
    let context = error_after(|dir| {
        edit(
            dir,
            "max_position_embeddings = 1024",
            "max_position_embeddings = 99999999999",
        );
    });
    assert!(
        context.contains("max_position_embeddings is 99999999999"),
        "{context}"
    );
    let eps = error_after(|dir| edit(dir, "rms_norm_eps = 0.00001", "rms_norm_eps = -1.0"));
    assert!(eps.contains("rms_norm_eps"), "{eps}");
    let surplus = error_after(|dir| {
        edit(
            dir,
            "num_hidden_layers = 6\nnum_attention_heads = 6\nnum_key",
            "num_hidden_layers = 5\nnum_attention_heads = 6\nnum_key",
        );
    });
    assert!(
        surplus.contains("unused tensor") && surplus.contains("model.layers.5."),
        "{surplus}"
    );
}
