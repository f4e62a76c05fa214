//! Known defects of other evaluators, and the tests that prevent them in acem3.

use std::path::Path;
use std::{fs, iter};

use crate::folder::{Folder, valid_case};

/// Known defects, each with its tests.
const DEFECTS: [(&str, &[&str]); 18] = [
    (
        "an unreadable verdict becomes a score, a tie or a zero",
        &[
            "every_text_parses_within_its_budget",
            "invalid_cases_become_unscored_records",
            "uncounted_answers_are_not_zeros",
            "report_without_labels_has_no_agreement",
        ],
    ),
    (
        "a response that contains `Score: 5` gets that score",
        &["response_cannot_change_the_number_of_ratings", "prompt_injection_is_found"],
    ),
    ("the judge never sees the image", &["judge_that_ignores_the_image_is_biased"]),
    (
        "a crash loses the run, or resuming duplicates records",
        &[
            "resume_reproduces_uninterrupted_run",
            "second_run_reuses_all_verdicts",
            "torn_last_record_is_judged_again",
        ],
    ),
    (
        "the cache returns verdicts of another judge or image",
        &[
            "resume_with_another_judge_is_rejected",
            "only_changed_cases_are_judged_again",
            "changed_image_is_judged_again",
        ],
    ),
    (
        "one metric silently replaces another",
        &["missing_metric_model_is_an_error", "damaged_metric_checkpoints_are_rejected"],
    ),
    (
        "results depend on batch size, threads or date",
        &[
            "records_do_not_depend_on_batch_size",
            "bits_do_not_depend_on_thread_count",
            "intervals_do_not_depend_on_threads",
            "equal_records_give_equal_reports",
        ],
    ),
    (
        "position bias is ignored, and ties are handled arbitrarily",
        &[
            "position_bias_is_found",
            "bias_findings_match_records_and_audit",
            "single_order_has_no_position_finding",
        ],
    ),
    (
        "longer responses and lists get higher scores",
        &[
            "verbosity_bias_is_found",
            "formatting_bias_is_found",
            "length_controlled_win_rates_match_statsmodels",
        ],
    ),
    (
        "items are lost silently",
        &[
            "unreadable_case_lowers_coverage_of_its_models",
            "all_outputs_state_the_same_coverage",
            "missing_verdicts_bound_the_statistics",
            "too_many_unscored_records_exit_3",
        ],
    ),
    ("result files contain the images", &["records_contain_no_pixels"]),
    (
        "a truncated verdict is scored",
        &["too_long_prompt_fails_alone", "context_is_usable_to_its_last_position"],
    ),
    ("a missing image aborts the run", &["case_folder_continues_after_every_problem"]),
    ("tables do not state whether higher is better", &["tables_state_whether_higher_is_better"]),
    (
        "a report loads remote content or executes text of a response",
        &[
            "page_loads_nothing_and_restricts_scripts",
            "untrusted_text_is_escaped",
            "csv_output_contains_no_formulas",
        ],
    ),
    (
        "noise is reported as a difference",
        &[
            "random_judge_has_no_significant_difference",
            "few_cases_are_unclear",
            "two_judges_are_compared_on_common_cases",
        ],
    ),
    ("a calibration is applied to another judge", &["calibration_of_another_judge_is_rejected"]),
    (
        "a coefficient does not match its name",
        &[
            "two_rater_statistics_match_scipy_and_scikit_learn",
            "multi_rater_statistics_match_krippendorff_statsmodels_and_pingouin",
            "statistics_match_published_tables",
        ],
    ),
];

#[test]
fn every_defect_has_its_tests() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it");
    let files = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let rust_files = files.filter(|path| path.extension().is_some_and(|e| e == "rs"));
    let source: String = rust_files.map(|path| fs::read_to_string(path).unwrap()).collect();
    for (defect, tests) in DEFECTS {
        for test in tests {
            let exists = source.contains(&format!("#[test]\nfn {test}()"));
            assert!(exists, "{defect}: no test `{test}`");
        }
    }
}

/// Judges a noise image, which is incompressible: the records contain its hash and no pixels.
#[test]
fn records_contain_no_pixels() {
    let folder = Folder::with_cases(2);
    let mut state = 1_u32;
    let noise = iter::repeat_with(|| {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (state >> 24) as u8
    });
    let image = image::GrayImage::from_raw(300, 300, noise.take(90_000).collect()).unwrap();
    image.save(folder.path("cases/images/0.png")).unwrap();
    assert_eq!(folder.judge("out", &[]).exit_code, 0);
    let records = folder.records("out");
    assert!(records.iter().all(|r| r["image"]["sha256"].is_string()));
    assert!(folder.read("out/records.jsonl").len() < 20_000);
}

#[test]
fn tables_state_whether_higher_is_better() {
    let folder = Folder::with_cases(6);
    folder.write_cases(&(0..6).map(valid_case).collect::<Vec<_>>());
    assert_eq!(folder.judge("out", &[]).exit_code, 0);
    let output = |args: &[&str]| folder.run(args).stdout;
    let agree = output(&["agree", "out", "--resamples", "50"]);
    assert!(agree.contains("mean absolute error (lower is better)"), "{agree}");
    assert!(output(&["metrics", "cases"]).contains("higher is better in every metric"));
    let report = output(&["report", "out", "--resamples", "50", "--format", "markdown"]);
    assert!(report.contains("higher is better"), "{report}");
    assert!(output(&["rank", "out", "--resamples", "50"]).contains("models, best first"));
}
