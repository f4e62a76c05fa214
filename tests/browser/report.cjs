// Opens a report in a browser, operates its controls and fails on any problem.
// Usage: node report.cjs MODULES CHROMIUM PAGE EXPECTED
// EXPECTED is JSON: {entries, search, found} and {flips} or, for the form correctness, {grades}: the numbers of entries by
// value of the filter "Verdict". `found` is the number of cases that contain `search`.
"use strict";
const assert = require("node:assert");
const path = require("node:path");
const { pathToFileURL } = require("node:url");

const [modules, executablePath, file, expected] = process.argv.slice(2);
const { chromium } = require(path.resolve(modules, "playwright-core"));
const axe = require(path.resolve(modules, "axe-core"));
const expectedCounts = JSON.parse(expected);
const pageUrl = pathToFileURL(path.resolve(file)).href;
const args = ["--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
  "--disable-background-networking", "--disable-component-update", "--disable-sync"];
const problems = [];

// Opens the page. Records console messages, errors, dialogs and network requests as problems.
async function openPage(browser, options, hash) {
  const context = await browser.newContext(options);
  const page = await context.newPage();
  page.on("console", (message) => {
    if (["error", "warning"].includes(message.type())) problems.push("console: " + message.text());
  });
  page.on("pageerror", (error) => problems.push("error: " + error.message));
  page.on("dialog", (dialog) => { problems.push("dialog: " + dialog.message()); dialog.dismiss(); });
  page.on("request", (request) => {
    if (!/^(file|data):/.test(request.url())) problems.push("request: " + request.url());
  });
  await page.goto(pageUrl + (hash || ""));
  return page;
}

// Runs axe and checks that the page fits the window. Returns the number of passed rules.
async function checkAccessibility(page, where) {
  await page.evaluate(axe.source);
  const result = await page.evaluate(() => window.axe.run(document, { resultTypes: ["violations"] }));
  for (const violation of result.violations) {
    const nodes = violation.nodes.slice(0, 3).map((node) => node.target.join(" ") + " " + node.html.slice(0, 120));
    problems.push(`axe, ${where}: ${violation.id} (${violation.help}): ${nodes.join(" | ")}`);
  }
  const [contentWidth, windowWidth] = await page.evaluate(() => [document.documentElement.scrollWidth, innerWidth]);
  assert.ok(contentWidth <= windowWidth,
    `${where}: ${contentWidth} pixels wide in a window of ${windowWidth}`);
  return result.passes.length;
}

const countListed = (page) => page.locator("#list a").count();
const screenshotFolder = process.env.ACEM3_BROWSER_SHOTS;
const screenshot = (page, name) =>
  (screenshotFolder ? page.screenshot({ path: path.join(screenshotFolder, name + ".png") }) : null);

// Filters pairs by flips and sorts them by score differences.
async function filterPairs(page) {
  await page.selectOption("#flip", "yes");
  assert.equal(await countListed(page), Math.min(50, expectedCounts.flips));
  await page.reload();
  assert.equal(await page.inputValue("#flip"), "yes");
  assert.equal(await countListed(page), Math.min(50, expectedCounts.flips));
  await page.click("button[type=reset]");
  await page.selectOption("#sort", "gap");
  const gaps = await page.locator("#list .scores").evaluateAll((all) => all.map((one) => {
    const found = [...one.textContent.matchAll(/([\d.]+) to ([\d.]+)/g)];
    return Math.max(-1, ...found.map(([, a, b]) => Math.abs(a - b)));
  }));
  assert.deepEqual(gaps, [...gaps].sort((a, b) => b - a), "sorted by the difference of scores");
}

// Filters responses by verdict and sorts them by probability.
async function filterGrades(page) {
  assert.ok(await page.locator("#flip").isHidden());
  for (const [grade, n] of Object.entries(expectedCounts.grades)) {
    await page.selectOption("#status", grade);
    assert.equal(await countListed(page), Math.min(50, n), grade);
  }
  await page.reload();
  const last = Object.keys(expectedCounts.grades).pop();
  assert.equal(await page.inputValue("#status"), last);
  await page.click("button[type=reset]");
  await page.selectOption("#sort", "low");
  const found = await page.locator("#list .scores").allTextContents();
  const probabilities = found.map((text) => Number(/probability ([\d.]+)/.exec(text)?.[1] ?? 2));
  assert.deepEqual(probabilities, [...probabilities].sort((a, b) => a - b), "sorted by probability");
}

// Searches, filters, sorts, opens cases and navigates, with the mouse and with the keyboard.
async function useControls(page) {
  const firstPage = Math.min(50, expectedCounts.entries);
  assert.equal(await countListed(page), firstPage);
  await page.fill("#q", expectedCounts.search);
  assert.equal(await countListed(page), Math.min(50, expectedCounts.found));
  assert.match(page.url(), /#cases\?q=/);
  await page.click("button[type=reset]");
  assert.equal(await countListed(page), firstPage);
  if (expectedCounts.grades) await filterGrades(page);
  else await filterPairs(page);

  // With the keyboard only: from the search to the first case and back.
  await page.selectOption("#sort", "");
  await page.locator("#list a").first().focus();
  await page.keyboard.press("Enter");
  await page.waitForSelector("#case:not([hidden])");
  assert.match(page.url(), /open=1/);
  assert.equal(await page.evaluate(() => document.activeElement.id), "case");
  await page.keyboard.press("j");
  assert.match(page.url(), /open=2/);
  await page.keyboard.press("k");
  assert.match(page.url(), /open=1/);
  assert.ok(await page.locator("#case .verdict").count() > 0);
  assert.ok(await page.locator("#case .bar").count() > (expectedCounts.grades ? 0 : 5), "bars of expected scores");
  await checkAccessibility(page, "with a case open");
  await screenshot(page, "case-" + page.viewportSize().width);
  await page.goBack();
  assert.match(page.url(), /open=2/);
  await page.keyboard.press("Escape");
  assert.ok(await page.locator("#case").isHidden());
  await page.locator("#list a").first().focus();
  await page.keyboard.press("/");
  assert.equal(await page.evaluate(() => document.activeElement.id), "q");
  // A link in the list of disputed cases opens its case.
  const link = page.locator("#disputed a").first();
  if (await link.count()) {
    await link.click();
    await page.waitForSelector("#case:not([hidden])");
  }
}

(async () => {
  const browser = await chromium.launch({ executablePath, args });
  let passes = 0;
  for (const width of [360, 1440]) {
    for (const colorScheme of ["light", "dark"]) {
      const options = { viewport: { width, height: 900 }, colorScheme };
      const page = await openPage(browser, options);
      passes += await checkAccessibility(page, `${width} pixels, ${colorScheme}`);
      await screenshot(page, `top-${width}-${colorScheme}`);
      await useControls(page);
      await page.context().close();
    }
  }
  // A URL with `open` opens its case. An invalid URL opens the page.
  let page = await openPage(browser, {}, "#cases?open=1&sort=low");
  assert.ok(await page.locator("#case").isVisible());
  assert.equal(await page.inputValue("#sort"), "low");
  await page.emulateMedia({ media: "print" });
  assert.ok(await page.locator("#filters").isHidden() && await page.locator("#case").isVisible());
  await page.context().close();
  page = await openPage(browser, {}, "#cases?open=99999999&page=-3&sort=%22&model=nobody&x=<b>");
  assert.ok(await countListed(page) > 0);
  await page.context().close();
  // Without JavaScript, the page shows the tables and a note about the missing parts.
  page = await openPage(browser, { javaScriptEnabled: false });
  assert.ok(await page.locator("table").count() > 5);
  assert.ok(await page.getByText("needs JavaScript").isVisible());
  await page.context().close();
  await browser.close();
  if (problems.length) throw new Error(problems.join("\n"));
  console.log(`axe ${axe.version}: no violations, ${passes} rules passed in four views`);
})().catch((error) => {
  console.error(error.stack);
  process.exit(1);
});
