// Rates the evaluations of judges on the site of `acem3 annotate` in a browser, and fails on any problem.
// The rater has no ratings of responses to enter. `WAY` is "choose" for two judges and "score" for one.
// Usage: node annotate_evaluations.cjs MODULES CHROMIUM RATER_LINK ADMINISTRATOR_LINK WAY
"use strict";
const assert = require("node:assert");
const { siteBrowser } = require("./site_browser.cjs");

const [modules, executablePath, raterLink, administratorLink, way] = process.argv.slice(2);
const origin = new URL(raterLink).origin;
const { run, forEachLook, enter, check } = siteBrowser({ modules, executablePath, origin });

// Rates the open evaluation, with the keyboard where there are scores.
async function rate(page) {
  if (way === "choose") {
    await page.click("text=Both are equally good");
  } else {
    for (const key of ["4", "2", "5"]) await page.keyboard.press(key);
    assert.deepEqual(await page.locator("fieldset.scores :checked").evaluateAll((all) => all.map((one) => one.value)), ["4", "2", "5"]);
  }
  await page.click("text=Submit and go on");
}

run(async (browser) => {
  const page = await enter(browser, raterLink, { viewport: { width: 1440, height: 900 } });
  await page.click("form[action='/evaluations/start'] button");
  const first = page.url();
  assert.match(first, /evaluation/);
  await page.click("text=Submit and go on");
  assert.ok(await page.locator("[role=alert]").isVisible());
  await page.goto(first);
  await rate(page);
  assert.notEqual(page.url(), first);
  await page.click("text=All cases");
  assert.match(await page.textContent("main"), /1 of \d+ submitted/);
  // Without scripts.
  const plain = await enter(browser, raterLink, { javaScriptEnabled: false, viewport: { width: 820, height: 1180 } });
  await plain.click("text=Go on");
  for (const group of await plain.locator("fieldset.scores").all()) await group.locator("input").nth(3).check();
  if (way === "choose") await plain.locator("fieldset.preference input").last().check();
  await plain.click("text=Submit and go on");
  await plain.click("text=All cases");
  assert.match(await plain.textContent("main"), /2 of \d+ submitted/);
  await forEachLook(browser, raterLink, async (rater, look) => {
    await check(rater, `overview of evaluations, ${way}, ${look}`);
    await rater.goto(first);
    await check(rater, `submitted evaluation, ${way}, ${look}`);
    await rater.goto(origin + "/");
    await rater.click("text=Go on");
    await check(rater, `open evaluation, ${way}, ${look}`);
  });
  await forEachLook(browser, administratorLink, async (administrator, look) => {
    await check(administrator, `progress of evaluations, ${way}, ${look}`);
  });
});
