// Decides about an unresolved pair on the site of `acem3 annotate` in a browser, and fails on any problem.
// The pair has a suggestion 2 with an evaluation.
// Usage: node annotate_decisions.cjs MODULES CHROMIUM RATER_LINK
"use strict";
const assert = require("node:assert");
const { siteBrowser } = require("./site_browser.cjs");

const [modules, executablePath, raterLink] = process.argv.slice(2);
const origin = new URL(raterLink).origin;
const problems = [];
const { launch, enter, check } = siteBrowser({ modules, executablePath, origin, problems });

(async () => {
  const browser = await launch();
  for (const colorScheme of ["light", "dark"]) {
    for (const width of [360, 1440]) {
      const page = await enter(browser, raterLink, { colorScheme, viewport: { width, height: 900 } });
      await page.goto(origin + "/case/1");
      await check(page, `decision ${colorScheme} ${width}`);
      // The texts of a suggestion start an own evaluation.
      await page.locator("a", { hasText: "Start an own evaluation" }).last().click();
      await check(page, `own evaluation ${colorScheme} ${width}`);
      assert.notEqual(await page.locator("textarea").first().inputValue(), "");
    }
  }
  const page = await enter(browser, raterLink, { javaScriptEnabled: false, viewport: { width: 820, height: 1180 } });
  await page.goto(origin + "/case/1");
  await page.click("text=Submit and go on");
  assert.match(await page.locator("[role=alert]").textContent(), /Choose a suggestion/);
  await page.locator("label", { hasText: "Suggestion 2" }).locator("input").check();
  await page.click("text=Submit and go on");
  assert.match(await page.textContent("main"), /1 of 1 submitted/);
  await browser.close();
  assert.deepEqual(problems, []);
  console.log("no problems");
})().catch((error) => {
  console.error(error.message, problems);
  process.exit(1);
});
