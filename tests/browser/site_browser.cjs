// Pages of the site of `acem3 annotate` in a browser, with their problems.
"use strict";
const assert = require("node:assert");
const path = require("node:path");

const args = ["--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
  "--disable-background-networking", "--disable-component-update", "--disable-sync"];
const screenshotFolder = process.env.ACEM3_BROWSER_SHOTS;

// Returns functions to open and check pages of the site with this origin.
exports.siteBrowser = function siteBrowser({ modules, executablePath, origin }) {
  const problems = [];
  const { chromium } = require(path.resolve(modules, "playwright-core"));
  const axe = require(path.resolve(modules, "axe-core"));

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

  // Opens a link at both widths in both colour schemes. `look` gets the page and the name of its look.
  async function forEachLook(browser, link, look) {
    for (const colorScheme of ["light", "dark"]) {
      for (const width of [360, 1440]) {
        const page = await enter(browser, link, { colorScheme, viewport: { width, height: 900 } });
        await look(page, `${colorScheme} ${width}`);
      }
    }
  }

  // Runs a script in a browser, and ends the process with an error if there is a problem.
  async function run(script) {
    try {
      const browser = await chromium.launch({ executablePath, args });
      await script(browser);
      await browser.close();
      assert.deepEqual(problems, []);
      console.log("no problems");
    } catch (error) {
      console.error(error.message, problems);
      process.exit(1);
    }
  }

  return { run, forEachLook, enter, check };
};
