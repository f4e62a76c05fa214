//! Defects by which evaluators have lost their users' trust, and the tests that hold them off here.

use std::path::Path;
use std::{fs, iter};

use crate::folder::{Folder, case};

/// What went wrong elsewhere, and the tests about it.
const DEFECTS: [(&str, &[&str]); 18] = [
    (
        "a verdict that cannot be read becomes a score, a tie or a zero",
        &[
            "every_text_parses_and_keeps_to_its_budget",
            "bad_cases_are_recorded_in_their_place_and_stop_nothing",
            "what_cannot_be_counted_is_no_zero",
            "without_labels_agreement_is_unknown_and_no_number",
        ],
    ),
    (
        "an answer that says `Score: 5` is given it",
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
        "a crash loses the run, or resuming doubles it",
        &[
            "a_killed_run_resumed_equals_an_uninterrupted_one",
            "a_second_run_reuses_everything",
            "a_torn_last_line_is_made_anew",
        ],
    ),
    (
        "verdicts of another judge or image are taken from a cache",
        &[
            "another_judge_is_refused_by_name",
            "a_changed_input_is_judged_where_it_changed",
            "a_changed_image_is_judged_again",
        ],
    ),
    (
        "one metric is silently taken for another",
        &[
            "no_metric_is_exchanged_for_another",
            "damaged_checkpoints_are_refused",
        ],
    ),
    (
        "numbers move with the batch, the threads or the day",
        &[
            "batch_size_moves_no_byte",
            "the_number_of_threads_changes_no_bit",
            "threads_do_not_move_an_interval",
            "equal_records_give_equal_bytes",
        ],
    ),
    (
        "the place of an answer decides, and ties are whatever a script makes of them",
        &[
            "position_bias_is_found",
            "leanings_are_those_of_the_records",
            "one_order_alone_tells_nothing_of_places",
        ],
    ),
    (
        "length and lists please",
        &[
            "verbosity_bias_is_found",
            "formatting_bias_is_found",
            "length_controlled_win_rates_match_statsmodels",
        ],
    ),
    (
        "items are lost and nobody is told",
        &[
            "a_lost_case_lowers_the_coverage_of_its_models",
            "coverage_is_told_in_the_same_words_everywhere",
            "what_is_missing_is_bounded_by_all_wrong_and_all_right",
            "too_many_unscored_is_exit_code_3",
        ],
    ),
    ("results swell with the images", &["records_hold_no_pixels"]),
    (
        "a verdict is cut off, and scored",
        &[
            "a_prompt_that_is_too_long_fails_alone",
            "the_context_is_used_to_its_last_place",
        ],
    ),
    (
        "an image is missing, and so is the run",
        &["a_folder_of_cases_goes_on_after_every_fault"],
    ),
    (
        "nobody knows whether more is better",
        &["tables_say_whether_more_is_better"],
    ),
    (
        "a report calls home, or runs what an answer says",
        &[
            "the_page_loads_nothing_and_says_what_may_run",
            "no_text_breaks_out_of_the_page",
            "no_text_of_an_answer_is_a_formula",
        ],
    ),
    (
        "chance is reported as a difference",
        &[
            "chance_is_not_taken_for_a_difference",
            "few_cases_are_unclear",
            "two_judges_on_the_same_cases",
        ],
    ),
    (
        "a calibration is used for a judge it was not made for",
        &[
            "another_judge_is_refused",
            "a_calibration_belongs_to_its_judge",
        ],
    ),
    (
        "a coefficient is not the one it is called",
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

/// An image of noise, which does not become smaller in any form, leaves its hash in a record.
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
fn tables_say_whether_more_is_better() {
    let folder = Folder::of(6);
    folder.write_cases(&(0..6).map(case).collect::<Vec<_>>());
    assert_eq!(folder.judge("out", &[]).code, 0);
    let told = |args: &[&str]| folder.run(args).out;
    let agree = told(&["agree", "out", "--resamples", "50"]);
    assert!(
        agree.contains("mean absolute error (lower is better)"),
        "{agree}"
    );
    assert!(told(&["metrics", "cases"]).contains("higher is better in every metric"));
    let report = told(&["report", "out", "--resamples", "50", "--format", "markdown"]);
    assert!(report.contains("higher is better"), "{report}");
    assert!(told(&["rank", "out", "--resamples", "50"]).contains("models, best first"));
}
