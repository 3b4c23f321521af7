// Drives the page in Chromium: main.mjs WEFT GENERATE ARP FRAME HTTP_SERVER SLOW DRIVER_DIRECTORY
//
// WEFT_TEST_GROUPS=page,live runs only the tests in these files.  SPDX-License-Identifier: ISC
import {spawnSync} from "node:child_process";
import {runAll, weft} from "./drive.mjs";
import * as embed from "./embed.mjs";
import * as input from "./input.mjs";
import * as limits from "./limits.mjs";
import * as live from "./live.mjs";
import * as page from "./page.mjs";
import * as site from "./site.mjs";
import * as tasks from "./tasks.mjs";

const groups = {page, input, tasks, limits, embed, live, site};
const {stderr} = spawnSync(weft, ["serve", "--help"], {encoding: "utf-8"});
if (stderr) {
	console.log(`skipped: ${stderr.trim()}`);
	delete groups.live;
}
for (const tool of ["cmark-gfm", "mandoc"])
	if (spawnSync(tool, ["--version"]).error) {
		console.log(`skipped: the site needs ${tool}`);
		delete groups.site;
	}
const wanted = process.env.WEFT_TEST_GROUPS?.split(",") ?? Object.keys(groups);
await runAll(wanted.filter(name => groups[name]).map(name => groups[name]));
