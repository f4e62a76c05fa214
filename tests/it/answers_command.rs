//! `acem3 data answers`: answers of served models and of checkpoints, in input order, resumable.

use std::path::PathBuf;
use std::process::Stdio;
use std::time::Duration;

use serde_json::{Value, json};

use crate::folder::{Folder, ProgramOutput, program_output, valid_case};
use crate::served::mock_engine::{EngineFlaw, EngineSettings, MockEngine};

fn settings() -> EngineSettings {
    EngineSettings {
        owner: "vllm",
        delay: Duration::from_millis(5),
        repeats_prompt: true,
        ..EngineSettings::default()
    }
}

/// Returns a question without responses.
fn question(i: usize) -> Value {
    let mut case = valid_case(i);
    let fields = case.as_object_mut().unwrap();
    fields.remove("responses");
    fields.remove("labels");
    case
}

/// Creates a folder with questions about images.
fn questions(n: usize) -> Folder {
    let folder = Folder::with_cases(n);
    folder.write_cases(&(0..n).map(question).collect::<Vec<_>>());
    folder
}

fn ask(folder: &Folder, out: &str, flags: &[&str]) -> ProgramOutput {
    folder.run(&[&["data", "answers", "cases", "--out", out], flags].concat())
}

fn lines(folder: &Folder, file: &str) -> Vec<Value> {
    folder.read(file).lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// Returns what the reference writes about the images of `make_internvl.py`, up to a special token or a
/// padding row of the embeddings, by image.
fn reference_answers(folder: &str, images: &[&str]) -> Vec<String> {
    let folder = PathBuf::from(checkpoint(folder));
    let values = folder.join("values.safetensors");
    let values = candle::safetensors::load(values, &candle::Device::Cpu).unwrap();
    let tokenizer = folder.join("tokenizer.json");
    let tokenizer = tokenizers::Tokenizer::from_file(tokenizer).unwrap();
    let special: Vec<u32> = (tokenizer.get_added_tokens_decoder().into_iter())
        .filter_map(|(id, token)| token.special.then_some(id))
        .collect();
    let answer = |image: &&str| {
        let greedy = values[&format!("{image}.greedy")].to_dtype(candle::DType::U32).unwrap();
        let greedy: Vec<u32> = greedy.to_vec1().unwrap();
        let known = tokenizer.get_vocab_size(true) as u32;
        let is_end = |token: &u32| *token >= known || special.contains(token);
        let tokens: Vec<u32> = greedy.into_iter().take_while(|token| !is_end(token)).collect();
        tokenizer.decode(&tokens, true).unwrap().trim().to_owned()
    };
    images.iter().map(answer).collect()
}

fn checkpoint(name: &str) -> String {
    let root = PathBuf::from(env!("CARGO_MANIFEST_DIR"));
    root.join("assets/golden/checkpoints").join(name).display().to_string()
}

#[test]
fn answers_are_in_input_order_and_a_judge_reads_them() {
    let folder = questions(20);
    let engine = MockEngine::start(EngineSettings { faults_percent: 15, ..settings() });
    engine.keep_bodies();
    let flags = ["--panel", &engine.url, "--model", "judge"];
    let drawn = ["--temperature", "0.5", "--top-k", "50", "--as", "first"];
    let result = ask(&folder, "cases/answers/a.jsonl", &[&flags[..], &drawn].concat());
    assert_eq!(result.exit_code, 0, "{}", result.stderr);
    assert!(
        result.stdout.starts_with("20 answers to 20 questions by first\n"),
        "{}",
        result.stdout
    );
    for (i, line) in lines(&folder, "cases/answers/a.jsonl").iter().enumerate() {
        assert_eq!(line["question_id"], format!("c{i}"));
        assert_eq!(line["text"], format!("what is shown in {i}?"));
        assert_eq!((&line["model_id"], line.get("cut")), (&json!("first"), None));
        assert_eq!(line["prompt_tokens"], 36, "the image is counted");
    }
    let body = engine.bodies().last().unwrap().clone();
    assert_eq!((&body["temperature"], &body["top_k"]), (&json!(0.5), &json!(50)));
    assert_eq!(body["max_tokens"], 200);
    let cut = ["--max-tokens", "3", "--as", "second", "--format", "json"];
    let result = ask(&folder, "cases/answers/b.jsonl", &[&flags[..], &cut].concat());
    let summary: Value = serde_json::from_str(&result.stdout).unwrap();
    assert_eq!((&summary["answered"], &summary["cut"]), (&json!(20), &json!(20)));
    let line = &lines(&folder, "cases/answers/b.jsonl")[7];
    assert_eq!((&line["text"], &line["cut"]), (&json!("what is shown"), &json!(true)));
    let result = folder.judge("out", &[]);
    assert_eq!(result.exit_code, 0, "{}", result.stderr);
    let records = folder.records("out");
    assert_eq!(records.len(), 20);
    assert_eq!(records[3]["pair"], json!(["first", "second"]));
    assert!(records.iter().all(|record| record["status"] == "judged"));
}

#[test]
fn killed_run_resumes_and_asks_nothing_twice() {
    let folder = questions(60);
    let engine = MockEngine::start(settings());
    let flags = ["--panel", &engine.url, "--model", "judge", "--concurrency", "2"];
    assert_eq!(ask(&folder, "whole.jsonl", &flags).exit_code, 0);
    let args = [&["data", "answers", "cases", "--out", "a.jsonl"], &flags[..]].concat();
    let mut command = folder.command(&args);
    let mut child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    let path = folder.path("a.jsonl");
    let written = || std::fs::read_to_string(&path).map_or(0, |text| text.lines().count());
    while written() < 5 {
        std::thread::sleep(Duration::from_millis(2));
    }
    child.kill().unwrap();
    child.wait().unwrap();
    let kept = written() as u64;
    assert!(kept < 60, "the run ended before it was killed");
    // A torn line, as a kill in the middle of a write leaves it.
    let torn = folder.read("a.jsonl") + "{\"question_id\":\"c";
    folder.write("a.jsonl", &torn);
    let before = engine.requests();
    let result = folder.run(&args);
    assert_eq!(result.exit_code, 0, "{}", result.stderr);
    assert!(result.stderr.contains("last line of an interrupted run"), "{}", result.stderr);
    assert_eq!(folder.read("a.jsonl"), folder.read("whole.jsonl"));
    assert!(engine.requests() - before <= 60 - kept + 4, "answers were asked again");
    // A complete run asks nothing but the test of the server.
    let before = engine.requests();
    let result = folder.run(&args);
    assert!(result.stdout.contains("reused      60 of earlier commands"), "{}", result.stdout);
    assert!(engine.requests() - before <= 3);
}

#[test]
fn server_that_goes_down_ends_the_run_and_the_same_command_resumes() {
    let folder = questions(60);
    let engine = MockEngine::start(settings());
    let flags =
        ["--panel", &engine.url, "--model", "judge", "--concurrency", "2", "--max-outage", "1"];
    assert_eq!(ask(&folder, "whole.jsonl", &flags).exit_code, 0);
    let result = std::thread::scope(|scope| {
        let run = scope.spawn(|| ask(&folder, "a.jsonl", &flags));
        let path = folder.path("a.jsonl");
        while std::fs::read_to_string(&path).map_or(0, |text| text.lines().count()) < 5 {
            std::thread::sleep(Duration::from_millis(2));
        }
        engine.set_down(true);
        run.join().unwrap()
    });
    assert_eq!(result.exit_code, 4, "{}", result.stderr);
    assert!(result.stderr.contains("run the same command again to resume"), "{}", result.stderr);
    engine.set_down(false);
    assert_eq!(ask(&folder, "a.jsonl", &flags).exit_code, 0);
    assert_eq!(folder.read("a.jsonl"), folder.read("whole.jsonl"));
}

#[test]
fn questions_without_answer_have_a_reason() {
    let folder = questions(4);
    std::fs::remove_file(folder.path("cases/images/1.png")).unwrap();
    let engine = MockEngine::start(EngineSettings { rejects: Some("shown in 1"), ..settings() });
    let flags = ["--panel", &engine.url, "--model", "judge"];
    let result = ask(&folder, "cases/answers/a.jsonl", &flags);
    assert_eq!(result.exit_code, 3, "{}", result.stderr);
    assert!(result.stderr.contains("75.0 % of the questions"), "{}", result.stderr);
    assert!(
        result.stdout.contains("unanswered  2 image, the first: images/1.png"),
        "{}",
        result.stdout
    );
    let answers = lines(&folder, "cases/answers/a.jsonl");
    assert!(answers[1].get("text").is_none() && answers[2].get("text").is_none());
    assert_eq!(
        (&answers[1]["unanswered"], &answers[2]["unanswered"]),
        (&json!("refused"), &json!("image"))
    );
    // The judge says why the response is missing.
    let result = folder.judge("out", &["--with-reference", "--form", "single"]);
    let record = &folder.records("out")[1];
    assert_eq!(record["status"], "unscored", "{record} {}", result.stderr);
    let message = record["message"].as_str().unwrap();
    assert!(message.contains("gave no answer (refused)"), "{message}");
}

#[test]
fn question_that_is_local_only_is_not_sent_to_an_allowed_host() {
    let folder = questions(3);
    let mut cases: Vec<Value> = (0..3).map(question).collect();
    cases[1]["local_only"] = json!(true);
    folder.write_cases(&cases);
    let engine = MockEngine::start(settings());
    engine.keep_bodies();
    let proxy = engine.url.trim_end_matches("/v1").to_owned();
    let run = |flags: &[&str]| {
        let args = ["data", "answers", "cases", "--out", "a.jsonl", "--model", "judge"];
        let mut command = folder.command(&[&args, flags].concat());
        command.envs([("HTTP_PROXY", &proxy), ("http_proxy", &proxy)]);
        program_output(&command.output().unwrap())
    };
    let host = ["--panel", "http://model.example/v1", "--allow-http"];
    let refused = run(&host);
    assert_eq!((refused.exit_code, engine.requests()), (2, 0), "{}", refused.stderr);
    assert!(refused.stderr.contains("--allow-host model.example"), "{}", refused.stderr);
    let result = run(&[&host[..], &["--allow-host", "model.example"]].concat());
    assert_eq!(result.exit_code, 0, "{}", result.stderr);
    let answers = lines(&folder, "a.jsonl");
    assert_eq!(answers[1]["unanswered"], "transport");
    assert!(answers[1]["message"].as_str().unwrap().contains("local_only"));
    assert!(!engine.bodies().iter().any(|body| body.to_string().contains("shown in 1?")));
    // On this machine the question is asked, and the others are not asked again.
    let before = engine.requests();
    let result = run(&["--panel", &engine.url]);
    assert_eq!(result.exit_code, 0, "{}", result.stderr);
    assert_eq!(lines(&folder, "a.jsonl")[1]["text"], "what is shown in 1?");
    assert!(engine.requests() - before <= 4);
}

#[test]
fn dry_run_estimates_and_writes_nothing() {
    let folder = questions(30);
    let engine = MockEngine::start(settings());
    let flags = ["--panel", &engine.url, "--model", "judge", "--dry-run", "--price", "1,2"];
    let result = ask(&folder, "answers/a.jsonl", &flags);
    assert_eq!(result.exit_code, 0, "{}", result.stderr);
    let text = &result.stdout;
    assert!(text.contains("requests   30\n") && text.contains("nothing was written"), "{text}");
    assert!(text.contains("1,080 of prompts, 30 written (at most 6,000)"), "{text}");
    assert!(!folder.path("answers").exists());
    assert_eq!(engine.requests(), 6, "three questions, and the test of the server");
}

#[test]
fn cost_limit_stops_the_run_and_a_larger_one_resumes() {
    let folder = questions(40);
    let engine = MockEngine::start(settings());
    let flags = ["--panel", &engine.url, "--model", "judge", "--price", "1000000,0"];
    let result = ask(&folder, "a.jsonl", &[&flags[..], &["--max-cost", "400"]].concat());
    assert_eq!(result.exit_code, 4, "{}", result.stderr);
    assert!(result.stderr.contains("--max-cost 400"), "{}", result.stderr);
    // A question costs 36.
    let answered = lines(&folder, "a.jsonl").len();
    assert!((5..=11).contains(&answered), "{answered}");
    let result = ask(&folder, "a.jsonl", &[&flags[..], &["--max-cost", "400"]].concat());
    assert_eq!(result.exit_code, 4, "earlier answers count: {}", result.stderr);
    let result = ask(&folder, "a.jsonl", &[&flags[..], &["--max-cost", "1500"]].concat());
    assert_eq!(result.exit_code, 0, "{}", result.stderr);
    assert_eq!(lines(&folder, "a.jsonl").len(), 40);
}

#[test]
fn other_settings_and_wrong_files_are_refused() {
    let folder = questions(2);
    let engine = MockEngine::start(settings());
    let flags = ["--panel", &engine.url, "--model", "judge"];
    assert_eq!(ask(&folder, "a.jsonl", &flags).exit_code, 0);
    let before = folder.read("a.jsonl");
    let other = ask(&folder, "a.jsonl", &[&flags[..], &["--max-tokens", "50"]].concat());
    assert_eq!(other.exit_code, 2);
    let expected = "max_tokens is `50`, and was `200`";
    assert!(other.stderr.contains(expected) && other.stderr.contains("hint: "), "{}", other.stderr);
    assert_eq!(folder.read("a.jsonl"), before);
    folder.write("foreign.jsonl", "{\"question_id\": 1, \"text\": \"yes\"}\n");
    folder.write("prompt.txt", "Answer briefly.\n");
    let (none, prompt): (&[&str], &[&str]) = (&[], &["--prompt", "prompt.txt"]);
    let unnamed: &[&str] = &["--as", " "];
    for (out, more, expected) in [
        ("foreign.jsonl", none, "has no answers of this command"),
        ("a.txt", none, "expected a name that ends in .jsonl"),
        ("cases", none, "is a folder"),
        ("cases/cases.jsonl", none, "is an input of this command"),
        ("b.jsonl", prompt, "because: has no {question}"),
        ("b.jsonl", unnamed, "--as: the name is empty"),
    ] {
        let result = ask(&folder, out, &[&flags[..], more].concat());
        assert_eq!(result.exit_code, 2, "{out}: {}", result.stderr);
        assert!(result.stderr.contains(expected), "{out}: {}", result.stderr);
    }
    assert!(!folder.path("b.jsonl").exists());
    let result = ask(&folder, "c.jsonl", &["--panel", &engine.url, "--model", "none"]);
    assert!(result.stderr.contains("has no model none"), "{}", result.stderr);
}

#[test]
fn options_that_a_host_rejects_are_left_out_unless_the_user_asks_for_them() {
    let folder = questions(2);
    let flaws = &[EngineFlaw::RejectsOptions];
    let engine = MockEngine::start(EngineSettings { owner: "host", flaws, ..settings() });
    engine.keep_bodies();
    let flags = ["--panel", &engine.url, "--model", "judge", "--max-tokens", "3"];
    let result = ask(&folder, "a.jsonl", &flags);
    assert_eq!(result.exit_code, 0, "{}", result.stderr);
    assert!(result.stderr.contains("it rejects temperature"), "{}", result.stderr);
    assert_eq!(lines(&folder, "a.jsonl")[1]["text"], "what is shown");
    assert_eq!(engine.bodies().last().unwrap()["max_completion_tokens"], 3);
    let result = ask(&folder, "b.jsonl", &[&flags[..], &["--temperature", "0.7"]].concat());
    assert_eq!(result.exit_code, 2, "{}", result.stderr);
    assert!(result.stderr.contains("hint: omit --temperature"), "{}", result.stderr);
}

#[test]
fn model_that_sees_no_images_needs_permission() {
    let folder = questions(2);
    let flaws = &[EngineFlaw::DropsImages];
    let engine = MockEngine::start(EngineSettings { flaws, ..settings() });
    let flags = ["--panel", &engine.url, "--model", "judge"];
    let result = ask(&folder, "a.jsonl", &flags);
    assert_eq!(result.exit_code, 2);
    assert!(result.stderr.contains("pass --text-only"), "{}", result.stderr);
    folder.write("prompt.txt", "Answer in one word.\n{question}\n");
    let more = ["--text-only", "--prompt", "prompt.txt"];
    let result = ask(&folder, "a.jsonl", &[&flags[..], &more].concat());
    assert_eq!(result.exit_code, 0, "{}", result.stderr);
    assert_eq!(lines(&folder, "a.jsonl")[1]["text"], "Answer in one word. what is shown in 1?");
}

#[test]
fn checkpoint_answers_alike_in_any_batch_and_resumes() {
    let folder = questions(6);
    let panel = checkpoint("internvl");
    let flags = ["--panel", &panel, "--device", "cpu", "--max-tokens", "12"];
    let one = ask(&folder, "one.jsonl", &[&flags[..], &["--batch-size", "1"]].concat());
    assert_eq!(one.exit_code, 0, "{}", one.stderr);
    let answers = lines(&folder, "one.jsonl");
    assert_eq!(answers.len(), 6);
    assert!(answers.iter().all(|line| line["model_id"] == "internvl"), "{answers:?}");
    assert!(answers.iter().any(|line| line["text"].is_string()), "{answers:?}");
    let many = ask(&folder, "many.jsonl", &flags);
    assert_eq!(many.exit_code, 0, "{}", many.stderr);
    assert_eq!(folder.read("many.jsonl"), folder.read("one.jsonl"));
    let first: String = folder.read("one.jsonl").split_inclusive('\n').take(2).collect();
    folder.write("many.jsonl", &first);
    let resumed = ask(&folder, "many.jsonl", &flags);
    assert!(resumed.stdout.contains("reused      2 of earlier commands"), "{}", resumed.stdout);
    assert_eq!(folder.read("many.jsonl"), folder.read("one.jsonl"));
    let result = ask(&folder, "a.jsonl", &[&flags[..], &["--temperature", "0.5"]].concat());
    assert!(result.stderr.contains("takes the most probable token"), "{}", result.stderr);
    let result = ask(&folder, "a.jsonl", &[&flags[..], &["--price", "1,2"]].concat());
    assert!(result.stderr.contains("--price: the model is not served"), "{}", result.stderr);
    let text_model = ["--panel", &checkpoint("qwen2"), "--device", "cpu"];
    let result = ask(&folder, "a.jsonl", &text_model);
    assert!(result.stderr.contains("qwen2 does not see images"), "{}", result.stderr);
}

#[test]
fn checkpoint_answers_like_the_reference() {
    let folder = Folder::empty();
    let images = ["odd", "small", "tall", "wide"];
    let case = |image: &&str| {
        let path = PathBuf::from(checkpoint("images")).join(format!("{image}.png"));
        let name = format!("images/{image}.png");
        std::fs::copy(path, folder.path("cases").join(&name)).unwrap();
        json!({"id": image, "image": name, "question": "Is there a mass, and how large is it?"})
    };
    let cases: Vec<Value> = images.iter().map(case).collect();
    folder.write_cases(&cases);
    let flags = ["--panel", &checkpoint("internvl"), "--device", "cpu", "--max-tokens", "16"];
    let result = ask(&folder, "a.jsonl", &flags);
    assert_eq!(result.exit_code, 0, "{}", result.stderr);
    let answers = lines(&folder, "a.jsonl");
    let expected = reference_answers("internvl", &images);
    assert!(expected.iter().any(|text| !text.is_empty()), "{expected:?}");
    for (answer, expected) in answers.iter().zip(&expected) {
        let text = answer["text"].as_str().unwrap_or_default();
        assert!(text.starts_with(expected.as_str()), "{answer} {expected:?}");
    }
}
