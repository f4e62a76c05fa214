// Several raters at once on the site of `acem3 annotate`, each in another way, while the server is killed and
// started again. Each retries as a person would: reloads, looks whether the case is submitted, and enters it again.
// Usage: node annotate_raters.cjs MODULES CHROMIUM RECORD LINK...
// Writes what each rater entered to RECORD: one JSON line for each case.
"use strict";
const assert = require("node:assert");
const fs = require("node:fs");
const path = require("node:path");

const [modules, executablePath, recordFile, ...links] = process.argv.slice(2);
const { chromium } = require(path.resolve(modules, "playwright-core"));
const args = ["--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
  "--disable-background-networking", "--disable-component-update", "--disable-sync"];
const origin = new URL(links[0]).origin;
const problems = [];
// Longest time without a server, in milliseconds.
const patience = 60_000;
// Every so many cases, a rater saves half of the scores as a draft first.
const draftInterval = 8;
const preferences = ["first", "equal", "second"];

const raters = [
  { way: "keyboard", options: { viewport: { width: 1440, height: 900 } } },
  { way: "mouse", options: { viewport: { width: 1440, height: 900 }, colorScheme: "dark" } },
  { way: "no script", options: { viewport: { width: 1024, height: 768 }, javaScriptEnabled: false } },
  { way: "touch", options: { viewport: { width: 820, height: 1180 }, hasTouch: true, isMobile: true } },
  { way: "touch", options: { viewport: { width: 390, height: 844 }, hasTouch: true, isMobile: true, colorScheme: "dark" } },
];

const pause = (milliseconds) => new Promise((resolve) => setTimeout(resolve, milliseconds));

// Returns a number below a limit that depends on the parts only.
function draw(limit, ...parts) {
  let hash = 2166136261;
  for (const character of parts.join("\u0000")) hash = Math.imul(hash ^ character.codePointAt(0), 16777619);
  hash = Math.imul(hash ^ (hash >>> 16), 0x85ebca6b);
  hash = Math.imul(hash ^ (hash >>> 13), 0xc2b2ae35);
  return ((hash ^ (hash >>> 16)) >>> 0) % limit;
}

// Returns the score of a rater: that of the answer, and often a point or two more or less.
function scoreOf(rater, question, answer, criterion) {
  const own = draw(10, rater, question, answer, criterion);
  const error = own < 5 ? 0 : own < 7 ? -1 : own < 9 ? 1 : rater % 2 ? 2 : -2;
  return Math.min(5, Math.max(0, draw(6, question, answer, criterion) + error));
}

// Returns the preference of a rater: mostly the answer with the higher final score.
function preferenceOf(rater, question, finalScores) {
  if (draw(7, rater, question) === 0) return preferences[draw(3, rater, question, "other")];
  const [first, second] = finalScores;
  return first > second ? "first" : first < second ? "second" : "equal";
}

// Returns true if a failed step is one that a stopped server explains.
function isConnectionError(error) {
  return /net::ERR|chrome-error|interrupted by another navigation|Timeout|Target page|NS_ERROR/.test(error.message);
}

// Opens a page, and reloads until the server is there.
async function open(page, url) {
  const end = Date.now() + patience;
  for (;;) {
    try {
      const response = await page.goto(url);
      if (response && response.status() < 500) return response;
    } catch (error) {
      if (!isConnectionError(error)) throw error;
    }
    assert.ok(Date.now() < end, `${url} did not open`);
    await pause(200);
  }
}

// Opens the link of a rater in a new context.
async function enter(browser, rater) {
  const context = await browser.newContext(raters[rater].options);
  const page = await context.newPage();
  page.on("dialog", (dialog) => dialog.accept());
  page.on("pageerror", (error) => problems.push("error: " + error.message));
  page.on("request", (request) => {
    if (!request.url().startsWith(origin)) problems.push("request: " + request.url());
  });
  await open(page, links[rater]);
  return page;
}

// Waits until a step has loaded another page. Returns its response, or null if the server stopped.
async function navigate(page, step) {
  try {
    const [response] = await Promise.all([page.waitForNavigation({ timeout: 15_000 }), step()]);
    return response;
  } catch (error) {
    if (!isConnectionError(error)) throw error;
    return null;
  }
}

// Returns what the page of a case shows.
async function look(page) {
  return page.evaluate(() => {
    const texts = (selector) => [...document.querySelectorAll(selector)].map((element) => element.textContent);
    const image = document.querySelector(".viewer img");
    const checked = (group) => { const input = group.querySelector(":checked"); return input && Number(input.value); };
    const preference = document.querySelector(".preference :checked");
    return {
      status: texts("[role=status]").join().trim(),
      question: texts(".texts > section > p.text")[0],
      answers: texts(".sides section > p.text"),
      scores: [...document.querySelectorAll("fieldset.scores")].map(checked),
      preference: preference && preference.value,
      isDicom: Boolean(document.querySelector("form.window")),
      source: image && image.src,
      hasImage: Boolean(image && image.complete && image.naturalWidth > 0),
    };
  });
}

// Enters scores into the groups from the first, and a preference if there is one.
async function fill(page, way, scores, preference) {
  const choice = preferences.indexOf(preference);
  if (way === "keyboard") {
    for (const score of scores) await page.keyboard.press(String(score));
    if (preference) {
      await page.keyboard.press("Space");
      for (let i = 0; i < choice; i += 1) await page.keyboard.press("ArrowRight");
    }
    return;
  }
  for (const [i, score] of scores.entries()) await choose(page, way, "fieldset.scores", i, score);
  if (preference) await choose(page, way, "fieldset.preference", 0, choice);
}

// Clicks or touches a label of a group, where it is on the screen.
async function choose(page, way, groups, index, choice) {
  const [x, y] = await page.evaluate(([groups, index, choice]) => {
    const label = document.querySelectorAll(groups)[index].querySelectorAll("label")[choice];
    label.scrollIntoView({ block: "center" });
    const box = label.getBoundingClientRect();
    return [box.x + box.width / 2, box.y + box.height / 2];
  }, [groups, index, choice]);
  await (way === "touch" ? page.touchscreen.tap(x, y) : page.mouse.click(x, y));
}

// Shows a DICOM image with another window, which leaves the form as it is. Returns false if the server stopped.
async function changeWindow(page) {
  await page.fill("[name=center]", "40");
  await page.fill("[name=width]", "400");
  await page.locator("form.window button").click();
  await page.waitForFunction(() => document.querySelector(".viewer img").complete);
  assert.equal(new URL(page.url()).search, "");
  const shown = await look(page);
  return shown.hasImage && shown.source.endsWith("image?center=40&width=400");
}

// Presses a button of the form.
async function press(page, way, name) {
  const button = page.getByRole("button", { name });
  if (way === "touch") return button.tap();
  if (way !== "keyboard") return button.click();
  // From the preference over the comment and the first button.
  for (let i = 0; i < 3; i += 1) await page.keyboard.press("Tab");
  assert.equal(await page.evaluate(() => document.activeElement.textContent), name);
  return page.keyboard.press("Enter");
}

// Rates one case, as often as it takes.
async function rateCase(page, rater, number) {
  const { way } = raters[rater];
  const record = { rater, number, attempts: 0, drafts: 0, confirmed: false };
  const end = Date.now() + patience;
  for (;;) {
    assert.ok(Date.now() < end, `case ${number} of rater ${rater} was not submitted`);
    await open(page, `${origin}/case/${number}`);
    const shown = await look(page);
    const { question, answers } = shown;
    assert.equal(answers.length, 2, page.url());
    const scores = [];
    for (let criterion = 0; criterion < 11; criterion += 1) {
      for (const answer of answers) scores.push(scoreOf(rater, question, answer, criterion));
    }
    const preference = preferenceOf(rater, question, scores.slice(-2));
    if (shown.status.includes("submitted")) {
      // The server stored the case and stopped before it could say so.
      assert.ok(record.attempts > 0, `case ${number} of rater ${rater} is submitted, and nobody did it`);
      assert.deepEqual([shown.scores, shown.preference], [scores, preference]);
      return record;
    }
    if (!shown.hasImage) continue;
    Object.assign(record, { question, answers, scores, preference });
    if (number % draftInterval === 1 && record.drafts === 0 && way !== "keyboard") {
      const half = scores.slice(0, 11);
      await fill(page, way, half, null);
      const saved = await navigate(page, () => press(page, way, "Save draft"));
      if (!saved) continue;
      assert.match((await look(page)).status, /Saved/);
      record.drafts += 1;
      await open(page, `${origin}/case/${number}`);
      assert.deepEqual((await look(page)).scores.slice(0, 11), half);
    }
    await fill(page, way, scores, preference);
    if (shown.isDicom && (way === "mouse" || way === "touch")) {
      if (!await changeWindow(page)) continue;
    }
    const filled = await look(page);
    assert.deepEqual([filled.scores, filled.preference], [scores, preference], `case ${number} of rater ${rater}`);
    record.attempts += 1;
    const response = await navigate(page, () => press(page, way, "Submit and go on"));
    // After a submission, the page is that of another case, or the overview.
    if (response && response.status() === 200 && page.url() !== `${origin}/case/${number}`) {
      record.confirmed = true;
      return record;
    }
  }
}

async function rate(browser, rater) {
  let page = await enter(browser, rater);
  await open(page, `${origin}/`);
  const count = await page.locator("ol.cases li").count();
  for (let number = 1; number <= count; number += 1) {
    if (rater === 4 && number === Math.floor(count / 2)) {
      // Another day: the cookie is gone, and the link opens the site again.
      await page.context().close();
      page = await enter(browser, rater);
    }
    const record = await rateCase(page, rater, number);
    fs.appendFileSync(recordFile, JSON.stringify(record) + "\n");
  }
  await open(page, `${origin}/`);
  assert.match(await page.textContent("main"), /All cases are done/);
}

(async () => {
  const browser = await chromium.launch({ executablePath, args });
  const start = Date.now();
  const seconds = await Promise.all(links.map(async (_, rater) => {
    await rate(browser, rater);
    return `${raters[rater].way} ${Math.round((Date.now() - start) / 1000)} s`;
  }));
  await browser.close();
  assert.deepEqual(problems, []);
  console.log(seconds.join(", "));
})().catch((error) => {
  console.error(error.stack, problems);
  process.exit(1);
});
