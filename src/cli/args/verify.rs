//! Arguments of `acem3 verify`.

use std::path::PathBuf;

use clap::Args;

use super::shared::{DicomArgs, FormArgs, JudgePanelArgs, OutputFormat};

const EXAMPLES: &str = "\
Examples:
  acem3 verify verdicts --panel my-panel
      Check every record, and judge 20 of them again
  acem3 verify verdicts --panel my-panel --form single --sample 200 --seed 7
      Judge 200 other records of a run with --form single again
  acem3 verify verdicts --panel http://127.0.0.1:8000/v1 --model NAME
      Compare with what a served judge answers now
  acem3 verify verdicts --sample 0
      Check checksums, keys and digests only

Pass --panel, --form, --reference, --rubric and the other flags of the judge as for `acem3 judge`; the \
error for another judge names what differs. Questions and responses come from the records, whose keys \
are checked; images come from the source that run.json names.";

/// Arguments of `acem3 verify`.
#[derive(Args, Clone, Debug)]
#[command(after_help = EXAMPLES)]
pub struct VerifyArgs {
    /// Folder that `judge --out` or `merge --out` wrote
    pub records: PathBuf,
    /// Judge N records again; 0 for none
    #[arg(long, value_name = "N", default_value_t = 20, env = "ACEM3_SAMPLE")]
    pub sample: usize,
    /// Draw the records with this seed
    #[arg(long, value_name = "N", default_value_t = 0, env = "ACEM3_SEED")]
    pub seed: u64,
    /// Read images from the cases at PATH [default: the source that run.json names]
    #[arg(long, value_name = "PATH", env = "ACEM3_CASES")]
    pub cases: Option<PathBuf>,
    /// Accept probabilities and expected scores that differ by at most POINTS; scores must be equal
    /// [default: 0, and 0.05 for records of a judge that is not reproducible]
    #[arg(long, value_name = "POINTS", env = "ACEM3_TOLERANCE", value_parser = parse_tolerance)]
    pub tolerance: Option<f64>,
    /// Print the result in this format
    #[arg(long, value_enum, default_value_t = OutputFormat::Text, env = "ACEM3_FORMAT")]
    pub format: OutputFormat,
    /// What a verdict is about.
    #[command(flatten)]
    pub form: FormArgs,
    /// Display settings of DICOM images.
    #[command(flatten)]
    pub dicom: DicomArgs,
    /// The judge. This field is the last one, because clap applies its help heading to all
    /// arguments after it.
    #[command(flatten)]
    pub judge: JudgePanelArgs,
}

/// Parses a number from 0 to 5.
fn parse_tolerance(text: &str) -> Result<f64, String> {
    let number = text.parse::<f64>().ok().filter(|value| (0.0..=5.0).contains(value));
    number.ok_or_else(|| "expected a number from 0 to 5".to_owned())
}
