// Rates a case on the site of `acem3 annotate` in a browser, and fails on any problem.
// Usage: node annotate.cjs MODULES CHROMIUM RATER_LINK ADMINISTRATOR_LINK
"use strict";
const assert = require("node:assert");
const path = require("node:path");

const [modules, executablePath, raterLink, administratorLink] = process.argv.slice(2);
const { chromium } = require(path.resolve(modules, "playwright-core"));
const axe = require(path.resolve(modules, "axe-core"));
const origin = new URL(raterLink).origin;
const args = ["--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
  "--disable-background-networking", "--disable-component-update", "--disable-sync"];
const problems = [];
const screenshotFolder = process.env.ACEM3_BROWSER_SHOTS;

// Opens a link. Records console messages, errors, dialogs and requests to other places as problems.
async function enter(browser, link, options) {
  const context = await browser.newContext(options);
  const page = await context.newPage();
  page.on("console", (message) => {
    // An incomplete form has the status 422, which the browser reports as an error.
    const isExpected = message.text().includes("422");
    if (["error", "warning"].includes(message.type()) && !isExpected) problems.push("console: " + message.text());
  });
  page.on("pageerror", (error) => problems.push("error: " + error.message));
  page.on("request", (request) => {
    if (!request.url().startsWith(origin)) problems.push("request: " + request.url());
  });
  await page.goto(link);
  await page.waitForURL((url) => !url.pathname.startsWith("/enter"));
  return page;
}

// Runs axe and checks that the page fits the window.
async function check(page, where) {
  // The page allows no foreign script; the debugger may still run one.
  const result = await page.evaluate(`(() => { ${axe.source}; return axe.run(document, { resultTypes: ["violations"] }); })()`);
  for (const violation of result.violations) {
    const nodes = violation.nodes.slice(0, 3).map((node) => node.target.join(" ") + " " + node.html.slice(0, 120));
    problems.push(`axe, ${where}: ${violation.id} (${violation.help}): ${nodes.join(" | ")}`);
  }
  const [contentWidth, windowWidth] = await page.evaluate(() => [document.documentElement.scrollWidth, innerWidth]);
  assert.ok(contentWidth <= windowWidth, `${where}: ${contentWidth} pixels wide in a window of ${windowWidth}`);
  if (screenshotFolder) await page.screenshot({ path: path.join(screenshotFolder, where.replace(/\W+/g, "-") + ".png"), fullPage: true });
}

// Enters all scores of the open case with the keyboard, from the top of the page.
async function rateByKeyboard(page) {
  const groups = await page.locator("fieldset.scores").count();
  for (let i = 0; i < groups; i += 1) await page.keyboard.press(String(i % 6));
  assert.equal(await page.locator("fieldset.scores :checked").count(), groups);
  const values = await page.locator("fieldset.scores :checked").evaluateAll((all) => all.map((one) => Number(one.value)));
  assert.deepEqual(values, values.map((_, i) => i % 6));
}

async function rate(browser) {
  const page = await enter(browser, raterLink, { viewport: { width: 1440, height: 900 } });
  await page.click("text=Start");
  const first = page.url();
  // An incomplete case stays a draft and says what is missing.
  await page.click("text=Submit and go on");
  assert.ok(await page.locator("[role=alert]").isVisible());
  await check(page, "case with problems");
  await page.goto(first);
  await rateByKeyboard(page);
  await page.click("text=Both are equally good");
  await page.fill("textarea", "Fine.");
  await page.click("text=Save draft");
  assert.match(await page.textContent("[role=status]"), /Saved/);
  await page.reload();
  assert.equal(await page.inputValue("textarea"), "Fine.");
  // Zoom by button and by wheel.
  const scale = () => page.evaluate(() => new DOMMatrix(getComputedStyle(document.querySelector(".viewer img")).transform).a);
  await page.click("[aria-label='Zoom in']");
  assert.ok(await scale() > 1.4);
  await page.hover(".viewer");
  await page.mouse.wheel(0, -200);
  assert.ok(await scale() > 1.6);
  await page.click("[aria-label='Show the whole image']");
  assert.equal(await scale(), 1);
  await page.click("text=Submit and go on");
  assert.notEqual(page.url(), first);
  await page.click("text=All cases");
  assert.match(await page.textContent("main"), /1 of \d+ submitted/);
}

// Rates the second case without scripts.
async function rateWithoutScripts(browser) {
  const page = await enter(browser, raterLink, { javaScriptEnabled: false, viewport: { width: 768, height: 1024 } });
  await page.click("text=Go on");
  for (const group of await page.locator("fieldset.scores").all()) await group.locator("input").nth(4).check();
  await page.locator("fieldset.preference input").first().check();
  await page.click("text=Submit and go on");
  await page.click("text=All cases");
  assert.match(await page.textContent("main"), /2 of \d+ submitted/);
}

(async () => {
  const browser = await chromium.launch({ executablePath, args });
  await rate(browser);
  await rateWithoutScripts(browser);
  for (const colorScheme of ["light", "dark"]) {
    for (const width of [360, 1440]) {
      const options = { colorScheme, viewport: { width, height: 900 } };
      const rater = await enter(browser, raterLink, options);
      await check(rater, `overview ${colorScheme} ${width}`);
      await rater.goto(origin + "/case/1");
      await check(rater, `submitted case ${colorScheme} ${width}`);
      await rater.goto(origin + "/case/3");
      await check(rater, `open case ${colorScheme} ${width}`);
      const administrator = await enter(browser, administratorLink, options);
      await check(administrator, `progress ${colorScheme} ${width}`);
      await administrator.goto(origin + "/admin/disagreements");
      await check(administrator, `disagreements ${colorScheme} ${width}`);
    }
  }
  await browser.close();
  assert.deepEqual(problems, []);
  console.log("no problems");
})().catch((error) => {
  console.error(error.message, problems);
  process.exit(1);
});
