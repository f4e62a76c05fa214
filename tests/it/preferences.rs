//! `acem3 data preferences`: pairs from evaluations of any form and rubric, and from wrong verdicts.

use serde_json::{Value, json};

use crate::folder::Folder;

/// Returns the lines of a file of preference pairs.
fn pairs(folder: &Folder, out: &str) -> Vec<Value> {
    let text = folder.read(&format!("{out}/preferences.jsonl"));
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// Writes cases with final labels, each about one image.
fn write_labelled_cases(folder: &Folder, n: usize) {
    let cases: Vec<Value> = (0..n)
        .map(|i| {
            let picture = image::GrayImage::from_pixel(3, 2, image::Luma([i as u8]));
            picture.save(folder.path(&format!("cases/images/{i}.png"))).unwrap();
            let responses = ["Left.", "Right, I think.", "Unknown."].iter().enumerate();
            let responses = responses
                .map(|(r, text)| json!({"model": format!("m{r}"), "text": format!("{text} {i}")}));
            json!({
                "id": format!("c{i}"), "image": format!("images/{i}.png"), "question": "Which side?",
                "reference": "Left.", "responses": responses.collect::<Vec<_>>(),
                "labels": {"final": [5, 3, 1]},
            })
        })
        .collect();
    folder.write_cases(&cases);
}

#[test]
fn prompts_are_those_of_the_panel() {
    let folder = Folder::with_cases(1);
    let data = |more: &[&str]| {
        let out = format!("out{}", more.len());
        let args = [&["data", "preferences", "--out", &out, "--count", "1"], more].concat();
        let output = folder.run(&args);
        assert_eq!(output.exit_code, 0, "{}", output.stderr);
        let pairs = pairs(&folder, &out);
        pairs[0]["prompt"].as_str().unwrap().to_owned()
    };
    let anchor = "\n5: ";
    let full = data(&[]);
    assert!(full.starts_with("### Instruction:") && full.contains(anchor), "{full}");
    let embedded = data(&["--layout", "case-first"]);
    assert!(embedded.starts_with("### Image And") && !embedded.contains(anchor), "{embedded}");
    let panel = concat!(env!("CARGO_MANIFEST_DIR"), "/assets/golden/checkpoints/llava");
    let output = folder.run(&["data", "preferences", "--out", "p", "-n", "1", "--panel", panel]);
    assert_eq!(output.exit_code, 0, "{}", output.stderr);
    let first = &pairs(&folder, "p")[0];
    let prompt = first["prompt"].as_str().unwrap();
    assert!(prompt.contains(anchor) && prompt.ends_with(" ASSISTANT:"), "{prompt}");
    assert!(first["chosen"].as_str().unwrap().starts_with(" Response 1:"));
    // The prompt begins and ends as the one that `panel prompts` prints.
    let printed = folder.run(&["panel", "prompts", "cases", "--panel", panel, "--format", "json"]);
    let printed: Value = serde_json::from_str(&printed.stdout).unwrap();
    let printed = printed[0]["prompt"].as_str().unwrap();
    let head = |prompt: &str| prompt.split("<image>").next().unwrap().to_owned();
    assert_eq!(head(prompt), head(printed));
    let both =
        folder.run(&["data", "preferences", "--out", "q", "--panel", panel, "--layout", "paper"]);
    assert_eq!(both.exit_code, 2);
}

#[test]
fn evaluations_of_all_forms_have_every_negative() {
    let folder = Folder::empty();
    let rating = |text: &str, score: &str| format!("Analysis: {text}\nScore: {score}");
    let list = format!(
        "Response 1:\nCriterion Safety:\n{}\nResponse 2:\nCriterion Safety:\n{}\nResponse 3:\nCriterion Safety:\n{}",
        rating("Safe.", "3"),
        rating("Harmful.", "1"),
        rating("Safe too.", "3")
    );
    let prompt = "### Reference Answer: (known to be correct)\nPneumothorax\n### Response:\nA fracture.\n\
                  ## give it a score between 1-3 about each criterion";
    let single = rating("The image shows a pneumothorax, so it is wrong.", "2");
    let lines = [
        json!({"prompt": "Compare.", "completion": list, "member": "safety"}),
        json!({"prompt": prompt, "completion": format!("Response:\n{single}")}),
        json!({"prompt": "Correct?", "completion": "Analysis: Both say left.\nCorrect: yes"}),
    ];
    let text: Vec<String> = lines.iter().map(Value::to_string).collect();
    folder.write("evaluations.jsonl", &text.join("\n"));
    let run = |out: &str, more: &[&str]| {
        folder.run(&[&["data", "preferences", "evaluations.jsonl", "--out", out], more].concat())
    };
    let output = run("every", &["--every"]);
    assert_eq!(output.exit_code, 0, "{}", output.stderr);
    let every = pairs(&folder, "every");
    let found: Vec<String> = every
        .iter()
        .map(|pair| {
            let id = pair["id"].as_str().unwrap().split('-').nth(1).unwrap();
            format!("{id} {}", pair["negatives"][0].as_str().unwrap())
        })
        .collect();
    let expected = [
        "1 score-swap",
        "1 score-addition",
        "1 rationale-exchange",
        "2 score-addition",
        "2 reference-removal",
        "3 score-addition",
    ];
    assert_eq!(found, expected);
    assert_eq!(every[0]["member"], "safety");
    let removed = every[4]["rejected"].as_str().unwrap();
    assert_eq!(removed, "Response:\nAnalysis: It is wrong.\nScore: 2");
    assert!(every[5]["rejected"].as_str().unwrap().ends_with("Correct: no"));
    // Scores stay in the range that the prompt states.
    let score = every[3]["rejected"].as_str().unwrap().rsplit_once(' ').unwrap().1;
    assert!(["1", "3"].contains(&score), "{score}");
    for reason in [
        "score swap does not apply to 2 evaluations: one response",
        "reference removal does not apply to 2 evaluations: no statement of the reference",
    ] {
        assert!(output.stderr.contains(reason), "{}", output.stderr);
    }
    // Equal seeds give equal files.
    assert_eq!(run("a", &["--seed", "4"]).exit_code, 0);
    assert_eq!(run("b", &["--seed", "4"]).exit_code, 0);
    assert_eq!(folder.read("a/preferences.jsonl"), folder.read("b/preferences.jsonl"));
}

#[test]
fn wrong_verdicts_are_rejected_and_those_of_a_teacher_chosen() {
    let folder = Folder::empty();
    write_labelled_cases(&folder, 40);
    for form in ["pair", "list", "single", "correctness"] {
        let judge = |out: &str, seed: &str| {
            let panel = format!("scripted:seed={seed}");
            let args = ["judge", "cases", "--out", out, "--panel", &panel, "--form", form];
            let output = folder.run(&args);
            assert_eq!(output.exit_code, 0, "{}", output.stderr);
        };
        let (own, teacher, out) = (format!("own-{form}"), format!("t-{form}"), format!("p-{form}"));
        judge(&own, "1");
        judge(&teacher, "2");
        let args = ["data", "preferences", "--mistakes", &own, "--corrections", &teacher];
        let output = folder.run(&[&args[..], &["--out", &out]].concat());
        assert_eq!(output.exit_code, 0, "{form}: {}", output.stderr);
        assert!(output.stderr.contains("compared with labels"), "{}", output.stderr);
        assert!(output.stderr.contains("they agree with the labels"), "{}", output.stderr);
        let pairs = pairs(&folder, &out);
        assert!(!pairs.is_empty(), "{form}: {}", output.stderr);
        for pair in &pairs {
            assert_eq!(pair["negatives"], json!(["wrong-verdict"]));
            assert_ne!(pair["chosen"], pair["rejected"]);
            let image = pair["images"][0].as_str().unwrap();
            assert!(folder.path(&format!("{out}/{image}")).is_file(), "{pair}");
            assert_eq!(pair["prompt"].as_str().unwrap().matches("<image>").count(), 1);
        }
        let conclusions = pairs.iter().filter(|pair| pair["member"] == "conclusion").count();
        assert_eq!(conclusions == 0, form == "correctness");
        // The chosen evaluations of this file correct the same verdicts.
        let file = format!("{out}/preferences.jsonl");
        let again = format!("again-{form}");
        let args = ["data", "preferences", "--mistakes", &own, "--corrections", &file];
        let output = folder.run(&[&args[..], &["--out", &again]].concat());
        assert_eq!(output.exit_code, 0, "{form}: {}", output.stderr);
        let text = |pairs: &[Value]| {
            pairs.iter().map(|p| format!("{}{}", p["id"], p["chosen"])).collect::<Vec<_>>()
        };
        assert_eq!(text(&self::pairs(&folder, &again)), text(&pairs), "{form}");
    }
}

#[test]
fn mistakes_need_labels_and_a_teacher() {
    let folder = Folder::with_cases(2);
    assert_eq!(folder.judge("own", &[]).exit_code, 0);
    let run = |args: &[&str]| {
        let output = folder.run(&[&["data", "preferences", "--out", "out"], args].concat());
        assert_eq!(output.exit_code, 2, "{}", output.stderr);
        assert_eq!(output.stdout, "");
        output.stderr
    };
    let alone = run(&["--mistakes", "own"]);
    assert!(alone.contains("--corrections"), "{alone}");
    let missing = run(&["--mistakes", "none", "--corrections", "own"]);
    assert!(missing.contains("none") && missing.contains("hint: "), "{missing}");
    let no_records = run(&["--mistakes", "own", "--corrections", "cases"]);
    assert!(no_records.contains("no records.jsonl\nhint: "), "{no_records}");
    let inside = folder.run(&[
        "data",
        "preferences",
        "--out",
        "own",
        "--mistakes",
        "own",
        "--corrections",
        "own",
    ]);
    assert!(inside.stderr.contains("is in this folder"), "{}", inside.stderr);
}
