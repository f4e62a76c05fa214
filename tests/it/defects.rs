//! Known defects of other evaluators, and the tests that prevent them in acem3.

use std::path::Path;
use std::{fs, iter};

use crate::folder::{Folder, case};

/// Known defects, each with its tests.
const DEFECTS: [(&str, &[&str]); 18] = [
    (
        "an unreadable verdict becomes a score, a tie or a zero",
        &[
            "every_text_parses_within_its_budget",
            "bad_cases_are_recorded_in_their_place_and_stop_nothing",
            "what_cannot_be_counted_is_no_zero",
            "without_labels_agreement_is_unknown_and_no_number",
        ],
    ),
    (
        "a response that contains `Score: 5` gets that score",
        &[
            "a_response_cannot_add_or_take_a_rating",
            "prompt_injection_is_found",
        ],
    ),
    (
        "the judge never sees the image",
        &["judge_that_ignores_the_image_is_biased"],
    ),
    (
        "a crash loses the run, or resuming duplicates records",
        &[
            "a_killed_run_resumed_equals_an_uninterrupted_one",
            "a_second_run_reuses_everything",
            "a_torn_last_line_is_made_anew",
        ],
    ),
    (
        "the cache returns verdicts of another judge or image",
        &[
            "another_judge_is_refused_by_name",
            "a_changed_input_is_judged_where_it_changed",
            "a_changed_image_is_judged_again",
        ],
    ),
    (
        "one metric silently replaces another",
        &[
            "no_metric_is_exchanged_for_another",
            "damaged_checkpoints_are_refused",
        ],
    ),
    (
        "results depend on batch size, threads or date",
        &[
            "batch_size_moves_no_byte",
            "bits_do_not_depend_on_thread_count",
            "intervals_do_not_depend_on_threads",
            "equal_records_give_equal_bytes",
        ],
    ),
    (
        "position bias is ignored, and ties are handled arbitrarily",
        &[
            "position_bias_is_found",
            "leanings_are_those_of_the_records",
            "one_order_alone_tells_nothing_of_places",
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
            "lost_case_lowers_coverage_of_its_models",
            "coverage_text_is_equal_in_all_outputs",
            "missing_verdicts_bound_the_statistics",
            "too_many_unscored_is_exit_code_3",
        ],
    ),
    (
        "result files contain the images",
        &["records_hold_no_pixels"],
    ),
    (
        "a truncated verdict is scored",
        &[
            "too_long_prompt_fails_alone",
            "context_is_used_to_its_last_position",
        ],
    ),
    (
        "a missing image aborts the run",
        &["case_folder_continues_after_every_problem"],
    ),
    (
        "tables do not state whether higher is better",
        &["tables_state_whether_higher_is_better"],
    ),
    (
        "a report loads remote content or executes text of a response",
        &[
            "the_page_loads_nothing_and_says_what_may_run",
            "no_text_breaks_out_of_the_page",
            "no_text_of_an_answer_is_a_formula",
        ],
    ),
    (
        "noise is reported as a difference",
        &[
            "chance_is_not_taken_for_a_difference",
            "few_cases_are_unclear",
            "two_judges_are_compared_on_common_cases",
        ],
    ),
    (
        "a calibration is applied to another judge",
        &[
            "calibration_of_another_judge_is_rejected",
            "a_calibration_belongs_to_its_judge",
        ],
    ),
    (
        "a coefficient does not match its name",
        &[
            "two_raters_as_scipy_and_scikit_learn",
            "several_raters_as_krippendorff_statsmodels_and_pingouin",
            "published_tables",
        ],
    ),
];

#[test]
fn every_defect_has_its_tests() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it");
    let files = fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path());
    let rust = files.filter(|path| path.extension().is_some_and(|e| e == "rs"));
    let all: String = rust.map(|path| fs::read_to_string(path).unwrap()).collect();
    for (defect, tests) in DEFECTS {
        for test in tests {
            let found = all.contains(&format!("#[test]\nfn {test}()"));
            assert!(found, "{defect}: no test `{test}`");
        }
    }
}

/// A record contains the hash of a noise image, which is incompressible, and no pixels.
#[test]
fn records_hold_no_pixels() {
    let folder = Folder::of(2);
    let mut state = 1_u32;
    let noise = iter::repeat_with(|| {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (state >> 24) as u8
    });
    let picture = image::GrayImage::from_raw(300, 300, noise.take(90_000).collect()).unwrap();
    picture.save(folder.path("cases/images/0.png")).unwrap();
    assert_eq!(folder.judge("out", &[]).code, 0);
    let records = folder.records("out");
    assert!(records.iter().all(|r| r["image"]["sha256"].is_string()));
    assert!(folder.read("out/records.jsonl").len() < 20_000);
}

#[test]
fn tables_state_whether_higher_is_better() {
    let folder = Folder::of(6);
    folder.write_cases(&(0..6).map(case).collect::<Vec<_>>());
    assert_eq!(folder.judge("out", &[]).code, 0);
    let output = |args: &[&str]| folder.run(args).out;
    let agree = output(&["agree", "out", "--resamples", "50"]);
    assert!(
        agree.contains("mean absolute error (lower is better)"),
        "{agree}"
    );
    assert!(output(&["metrics", "cases"]).contains("higher is better in every metric"));
    let report = output(&["report", "out", "--resamples", "50", "--format", "markdown"]);
    assert!(report.contains("higher is better"), "{report}");
    assert!(output(&["rank", "out", "--resamples", "50"]).contains("models, best first"));
}
