// Drives the page in Chromium: main.mjs WEFT GENERATE ARP FRAME HTTP_SERVER DRIVER_DIRECTORY
// SPDX-License-Identifier: ISC
import {spawnSync} from "node:child_process";
import {runAll, weft} from "./drive.mjs";
import * as embed from "./embed.mjs";
import * as live from "./live.mjs";
import * as page from "./page.mjs";

const {stderr} = spawnSync(weft, ["serve", "--help"], {encoding: "utf-8"});
if (stderr)
	console.log(`skipped: ${stderr.trim()}`);
await runAll(stderr ? [page, embed] : [page, embed, live]);
