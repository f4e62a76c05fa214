// Decides about an unresolved pair on the site of `acem3 annotate` in a browser, and fails on any problem.
// The pair has a suggestion 2 with an evaluation.
// Usage: node annotate_decisions.cjs MODULES CHROMIUM RATER_LINK
"use strict";
const assert = require("node:assert");
const { siteBrowser } = require("./site_browser.cjs");

const [modules, executablePath, raterLink] = process.argv.slice(2);
const origin = new URL(raterLink).origin;
const { run, forEachLook, enter, check } = siteBrowser({ modules, executablePath, origin });

run(async (browser) => {
  await forEachLook(browser, raterLink, async (page, look) => {
    await page.goto(origin + "/case/1");
    await check(page, `decision ${look}`);
    // The texts of a suggestion start an own evaluation.
    await page.locator("a", { hasText: "Start an own evaluation" }).last().click();
    await check(page, `own evaluation ${look}`);
    assert.notEqual(await page.locator("textarea").first().inputValue(), "");
  });
  const page = await enter(browser, raterLink, { javaScriptEnabled: false, viewport: { width: 820, height: 1180 } });
  await page.goto(origin + "/case/1");
  await page.click("text=Submit and go on");
  assert.match(await page.locator("[role=alert]").textContent(), /Choose a suggestion/);
  await page.locator("label", { hasText: "Suggestion 2" }).locator("input").check();
  await page.click("text=Submit and go on");
  await page.waitForURL(origin + "/");
  assert.match(await page.textContent("main"), /1 of 1 submitted/);
});
