// The page as a person uses it.  SPDX-License-Identifier: ISC
import assert from "node:assert/strict";
import {spawnSync} from "node:child_process";
import {readFileSync, readdirSync, writeFileSync} from "node:fs";
import {NAMES_PX, RED, YELLOW, at, canvas, close, count, dragFinger, drop, eventually, file, find, fingers, frame, generate, open, overhear, part, placed, promiseAt, record, redrawn, run, seen, selected, serveFolder, shot, still, unpack, until, weft} from "./drive.mjs";

// Promises with odd labels, one after the other.
function hostileTrace() {
	const quoted = text => `"${text.replaceAll("\\", "\\\\").replaceAll('"', '\\"')}"`;
	const lines = HOSTILE_LABELS.flatMap((label, i) => [`(op(Creates 0 ${i + 1}))`, `(op(Label ${i + 1} ${quoted(label)}))`]);
	return lines.map((line, i) => `((time ${i}.5)${line})\n`).join("");
}

const HOSTILE_NAME = `"><img src=x onerror=alert(1)>&lt;.sexp`;
const HOSTILE_LABELS = ["</script><img src=x onerror=alert(2)>", "<!--<script>", "\u05e9\u05dc\u05d5\u05dd", "\u{1f9f5} thread"];

export function prepare() {
	record("good");
	record("bad");
	run(generate, "short", "--events=2000", "-o", "few.ctf");
	writeFileSync(at("cut.ctf"), readFileSync(at("few.ctf")).subarray(0, 10000));
	run(generate, "random", "--events=20k", "--format=native", "--streams=3", "--kernel=2k", "-o", "kernel");
	run(weft, "html", "kernel", "-o", "kernel.html");
	run(weft, "html", "cut.ctf", "-o", "cut.html");
	run(weft, "html", "few.ctf", "-o", "few.html");
	run(weft, "html", "arp-bad", "-o", "one.html");
	run(weft, "html", "--compare", "arp-good", "arp-bad", "-o", "two.html");
	run(weft, "html", "arp-good", "arp-bad", "-o", "together.html");
	run(weft, "html", "--compare", "arp-good", "arp-bad", "-o", "served");
	writeFileSync(at(HOSTILE_NAME), hostileTrace());
	run(weft, "html", HOSTILE_NAME, "-o", "hostile.html");
	const page = readFileSync(at("one.html"), "latin1");
	const trace = page.indexOf('class="trace"'), start = page.indexOf(">", trace) + 1;
	writeFileSync(at("damaged.html"), `${page.slice(0, start + 200)}AAAAAAAA${page.slice(start + 208)}`, "latin1");
}

export const tests = {
	async "HTML file draws without another request"() {
		const page = await open(file("one.html"));
		assert.deepEqual(page.requests.map(url => url.split("/").pop()), ["one.html"]);
		await eventually("a red line", async () => await count(page, RED) > 100);
		assert.match(await page.title(), /^arp-bad/);
		await close(page);
	},

	async "printed page has picture and findings, without buttons"() {
		if (spawnSync("pdftotext", ["-v"]).error) {
			console.log("     skipped: no pdftotext");
			return;
		}
		const page = await open(file("one.html"), {colorScheme: "dark"});
		await page.locator(".header .sign").waitFor();
		await page.getByRole("button", {name: "Panel"}).click();
		await page.locator("[data-kind=finding]").first().waitFor();
		writeFileSync(at("one.pdf"), await page.pdf({preferCSSPageSize: true, printBackground: true}));
		const said = await page.locator("[data-kind=finding]").first().getAttribute("aria-label");
		const text = run("pdftotext", "-layout", "one.pdf", "-").toString().replace(/\s+/g, " ");
		assert.match(text, /^ ?arp-bad \d+ events/);
		const [value, name] = [said.slice(0, said.indexOf(": ")), said.slice(said.indexOf(": ") + 2)];
		assert.ok(text.includes(`${name} ${value}`), text);
		assert.doesNotMatch(text, /Panel|Find\b|Why\?|\u2715|\u2630/);
		// the first printed page is white at its edges, and its picture is as wide as the paper within the margins
		run("pdftoppm", "-r", "50", "-f", "1", "-l", "1", "one.pdf", "one");
		const name1 = readdirSync(at(".")).find(entry => /^one-0*1\.ppm$/.test(entry)), ppm = readFileSync(at(name1));
		const [, width, height] = ppm.toString("latin1", 0, 20).match(/^P6\s(\d+) (\d+)\s/).map(Number), body = ppm.length - width * height * 3;
		const isWhite = (x, y) => ppm.subarray(body + (y * width + x) * 3, body + (y * width + x) * 3 + 3).every(value => value === 255);
		const columns = [...Array(width).keys()].filter(x => [...Array(height).keys()].some(y => !isWhite(x, y)));
		const rows = [...Array(height).keys()].filter(y => [...Array(width).keys()].some(x => !isWhite(x, y)));
		assert.ok(width > height && columns[0] > 10 && columns.at(-1) < width - 10 && rows[0] > 10 && rows.at(-1) < height - 10, `${[width, height, columns[0], columns.at(-1), rows[0], rows.at(-1)]}`);
		assert.ok(columns.at(-1) - columns[0] > 0.6 * width, "the picture is large");
		let dark = 0;
		for (let i = body; i < ppm.length; i += 3)
			dark += ppm[i] < 100;
		assert.ok(dark < 0.1 * width * height, `${dark} of ${width * height} are dark`);
		// after the print, the screen is as before
		await still(page);
		assert.ok(await page.getByRole("button", {name: "Panel"}).isVisible());
		await close(page);
	},

	async "promise under the pointer has an outline, a tip and a time"() {
		const page = await open(file("one.html"));
		let before = await still(page, ".surface");
		await page.mouse.move(500, 400);
		before = await redrawn(page, before, ".surface");
		await page.mouse.move(300, 400);
		before = await redrawn(page, before, ".surface");
		await page.mouse.move(5, 5); // in the overview, where there is no line
		await redrawn(page, before, ".surface");
		await close(page);
	},

	async "each click and each Escape has an effect"() {
		const page = await open(`${file("one.html")}#t=0..60ms`);
		await page.keyboard.press("p"); // the panel stays closed
		await page.keyboard.press("p");
		const rows = [];
		while (rows.length < 3)
			rows.push(await promiseAt(page, 300, (rows.at(-1) ?? 60) + 60));
		await page.mouse.move(3, 3);
		let before = await still(page, ".surface");
		for (const y of rows) {
			await page.mouse.click(300, y);
			await page.mouse.move(3, 3);
			await redrawn(page, before, ".surface");
			before = await still(page, ".surface");
		}
		await page.keyboard.press("Escape");
		await redrawn(page, before, ".surface");
		await close(page);
	},

	async "Shift and drag measure an interval, and Escape removes it"() {
		const page = await open(file("one.html"));
		await page.mouse.move(300, 300);
		await page.keyboard.down("Shift");
		await page.mouse.down();
		let before = await still(page, ".surface");
		for (const x of [350, 400, 450]) {
			await page.mouse.move(x, 300);
			before = await redrawn(page, before, ".surface");
		}
		await page.mouse.up();
		await page.keyboard.up("Shift");
		await page.mouse.move(5, 5);
		before = await still(page, ".surface");
		await page.keyboard.press("Escape");
		await redrawn(page, before, ".surface");
		await close(page);
	},

	async "wheel zooms at the pointer, drag pans, Home shows all"() {
		const page = await open(file("one.html"));
		await page.keyboard.press("S"); // shows sleep in its full length
		const whole = await seen(page);
		let before = await shot(page);
		await page.mouse.move((NAMES_PX + 1000) / 2, 300);
		await page.mouse.wheel(0, -300);
		const zoomed = await seen(page, ({span}) => span < whole.span * 0.9);
		assert.ok(Math.abs((zoomed.from - whole.from) / (whole.to - zoomed.to) - 1) < 0.1, "in the middle");
		before = await redrawn(page, before);
		await page.mouse.down();
		await page.mouse.move((NAMES_PX + 1000) / 2 - 200, 300, {steps: 4});
		await page.mouse.up();
		const panned = await seen(page, ({from}) => from > zoomed.from);
		assert.ok(Math.abs((panned.from - zoomed.from) / (zoomed.span * 200 / (1000 - NAMES_PX)) - 1) < 0.1 && Math.abs(panned.span - zoomed.span) < 1e3);
		await redrawn(page, before);
		await page.keyboard.press("Home");
		await seen(page, ({from, to}) => from === whole.from && to === whole.to);
		await close(page);
	},

	async "search counts matches, moves between them and reports errors"() {
		const page = await open(file("one.html"));
		await find(page, "ARP response", /^[1-9]\d* found/);
		await eventually("yellow", async () => await count(page, YELLOW, ".surface") > 20);
		await page.keyboard.press("Enter");
		await until(page, () => /^1 of/.test(document.querySelector(".finder output").textContent));
		const first = await selected(page);
		await page.keyboard.press("Enter");
		assert.notEqual(await selected(page, id => id && id !== first), first);
		await page.keyboard.press("Shift+Enter");
		await selected(page, id => id === first);
		// the list marks the current match; arrow keys move in the list, and Enter goes to a match
		const matches = page.locator(".results button"), current = page.locator(".results [aria-current]"), input = page.locator(".finder input");
		await current.waitFor();
		assert.match(await current.textContent(), /ARP response.* at .*s, /);
		assert.equal(await matches.count(), Number((await page.locator(".finder output").textContent()).match(/^1 of (\d+)$/)[1]));
		await page.keyboard.press("ArrowDown");
		await page.keyboard.press("ArrowDown");
		await page.keyboard.press("Enter");
		await until(page, () => /^2 of/.test(document.querySelector(".finder output").textContent));
		await eventually("the focus stays", async () => await matches.nth(1).evaluate(match => match === document.activeElement && match.ariaCurrent === "true"));
		await page.keyboard.press("ArrowUp");
		await page.keyboard.press("ArrowUp");
		assert.ok(await input.evaluate(element => element === document.activeElement));
		await input.fill("longer:nonsense");
		await until(page, () => document.querySelector(".finder .wrong").textContent !== "");
		await eventually("nothing yellow", async () => await count(page, YELLOW, ".surface") === 0);
		await page.locator(".finder input").fill("ring");
		await eventually("yellow again", async () => await count(page, YELLOW, ".surface") > 20);
		await page.keyboard.press("Escape");
		assert.ok(await page.locator(".finder").isHidden());
		await eventually("no matches any more", async () => await count(page, YELLOW, ".surface") === 0);
		await close(page);
	},

	async "URL holds the view, and Back restores the previous one"() {
		const url = file("one.html");
		let page = await open(url);
		await find(page, "failed");
		await page.keyboard.press("Enter");
		await placed(page, where => where.includes("find=failed") && where.includes("sel="));
		const there = page.url();
		await page.keyboard.press("Escape");
		await page.keyboard.press("Escape");
		await placed(page, where => !where.includes("find=") && !where.includes("sel="));
		await page.goBack(); // the last action removed the selection
		await placed(page, where => where.includes("sel="));
		await page.goBack();
		await placed(page, where => where.includes("find=failed"));
		await eventually("yellow", async () => await count(page, YELLOW, ".surface") > 0);
		await close(page);
		page = await open(there);
		await eventually("yellow", async () => await count(page, YELLOW, ".surface") > 0);
		await page.locator(".panel [data-kind=title]").waitFor();
		assert.equal(part(page, "sel"), new URL(there).hash.match(/sel=(\d+)/)[1]);
		await close(page);
	},

	async "menu opens by click and right click, and closes by Escape"() {
		const page = await open(file("one.html"));
		const box = await page.locator(".menu-button").boundingBox();
		assert.ok(box.x < 50 && box.y < 50);
		await page.locator(".menu-button").click();
		assert.ok(await page.getByRole("menuitem", {name: /Export as SVG/}).isVisible());
		await page.keyboard.press("Escape");
		assert.ok(await page.locator(".popup").isHidden());
		await page.mouse.click(500, 300, {button: "right"});
		assert.ok(await page.getByRole("menuitem", {name: /Show the whole trace/}).isVisible());
		await close(page);
	},

	async "menu hides one counter, and Space hides all"() {
		const page = await open(file("one.html"));
		const all = await still(page, ".surface");
		await page.locator(".menu-button").click();
		const item = page.getByRole("menuitemcheckbox", {name: "tcp-to-ip"});
		assert.equal(await item.getAttribute("aria-checked"), "true");
		await item.click();
		await redrawn(page, all, ".surface");
		await page.locator(".menu-button").click();
		assert.equal(await item.getAttribute("aria-checked"), "false");
		await item.click();
		await eventually("it is there again", async () => (await shot(page, ".surface")).equals(all));
		await page.keyboard.press("Space");
		await placed(page, where => /metrics=0/.test(where));
		await redrawn(page, all, ".surface");
		await page.keyboard.press("Space");
		await eventually("they are there again", async () => (await shot(page, ".surface")).equals(all));
		await close(page);
	},

	async "thread lane shows which promise was on CPU"() {
		const page = await open(file("kernel.html"));
		const all = await still(page, ".surface");
		await page.keyboard.press("T");
		await placed(page, where => /threads=0/.test(where));
		await redrawn(page, all, ".surface");
		await page.keyboard.press("T");
		await eventually("they are there again", async () => (await shot(page, ".surface")).equals(all));
		await page.keyboard.press(".");
		const status = page.getByRole("status").filter({hasText: "had to wait"});
		await status.waitFor({state: "attached"});
		const first = await status.textContent();
		assert.match(first, /\(tid 100\d\) /);
		await page.keyboard.press(".");
		await eventually("the next one", async () => await status.textContent() !== first);
		await page.keyboard.press(",");
		await eventually("back at the first", async () => await status.textContent() === first);
		await page.keyboard.press("Escape");
		await page.getByRole("status").filter({hasText: "had to wait"}).waitFor({state: "detached"});
		await close(page);
	},

	async "visible picture is exported as SVG and PNG"() {
		const page = await open(file("one.html"));
		for (const [name, magic] of [["SVG", "<svg"], ["PNG", "\x89PNG"]]) {
			await page.locator(".menu-button").click();
			const [download] = await Promise.all([
				page.waitForEvent("download"), page.getByRole("menuitem", {name: `Export as ${name}`}).click()]);
			assert.equal(download.suggestedFilename(), `arp-bad.${name.toLowerCase()}`);
			const text = readFileSync(await download.path()).toString("latin1");
			assert.ok(text.slice(0, 200).includes(magic), text.slice(0, 40));
			if (name === "SVG")
				assert.match(text, /ARP response/);
			else
				assert.ok(text.length > 5000, `${text.length} bytes of a picture`);
		}
		await close(page);
	},

	async "wide page shows a summary and a table that sorts and filters"() {
		const page = await open(file("one.html"), {viewport: {width: 1280, height: 720}});
		const about = page.locator(".panel section").first();
		await about.locator("[data-kind=title]").waitFor();
		await about.getByRole("button", {name: /^Hang: Since .*, for .*: bind /}).click();
		assert.equal(await page.locator(".panel section").nth(1).locator(".card.open").count(), 1);
		assert.match(await about.locator("[data-kind=title] .name").textContent(), /^(?!.*recorded)/, "the panel tells of the promise that hangs");
		await page.keyboard.press("Escape");
		await page.keyboard.press("Escape");
		await about.locator("[data-kind=sentence]").first().waitFor();
		await page.keyboard.press("q");
		const counts = async () => (await page.locator("[data-kind=type] .value span:first-child").allTextContents()).map(Number);
		await page.getByRole("button", {name: "count, Sort by number of promises"}).click();
		const all = await counts();
		assert.deepEqual(all, all.toSorted((a, b) => b - a));
		await page.getByRole("searchbox", {name: "Filter types by name"}).fill("CONDITION");
		await eventually("fewer types", async () => (await counts()).length < all.length);
		for (const name of await page.locator("[data-kind=type] .name").allTextContents())
			assert.match(name, /condition/i);
		const {width} = await page.locator(".panel").boundingBox();
		await page.mouse.move(1280 - width, 300);
		await page.mouse.down();
		await page.mouse.move(1280 - width - 100, 300);
		await page.mouse.up();
		assert.ok((await page.locator(".panel").boundingBox()).width > width + 90);
		await close(page);
	},

	async "panel describes the selection, and its links select promises"() {
		const page = await open(file("one.html"));
		await find(page, "failed");
		await page.keyboard.press("Enter");
		const before = await selected(page);
		const finding = page.getByRole("button", {name: /^Hang: .*ARP response/});
		await finding.waitFor();
		await page.locator(".finder input").press("Escape");
		const whole = await seen(page);
		await page.locator(".panel [data-kind=link]").first().click();
		const next = await selected(page, id => id && id !== before);
		await page.keyboard.press("Alt+ArrowLeft");
		await selected(page, id => id === before);
		await page.getByRole("button", {name: "Why?"}).click();
		await page.getByText("Why the promise is in this state", {exact: true}).waitFor();
		assert.equal(await finding.count(), 2, "the answer, and the finding");
		await page.getByRole("button", {name: "Close the answer"}).click();
		await eventually("one", async () => await finding.count() === 1);
		await finding.focus();
		await page.keyboard.press("Enter");
		const cause = await selected(page, id => id && id !== before && id !== next);
		await seen(page, ({from}) => from > whole.from);
		assert.equal(await finding.getAttribute("aria-expanded"), "true");
		assert.deepEqual(await page.locator(".card.open h4").allTextContents(), ["Wait chain", "Cause", "Next step"]);
		assert.match(await page.locator(".card.open [data-kind=evidence] .value").first().textContent(), /^\d+\.\d{3}(\d{3})? \S+$/, "all digits");
		await page.locator(".card.open [data-kind=evidence]", {hasText: "signals condition"}).last().click();
		await selected(page, id => id && id !== cause);
		await page.locator(".panel > .close").click();
		assert.ok(await page.locator(".panel").isHidden());
		await page.getByRole("button", {name: "Findings: 1"}).click();
		assert.ok(await page.locator(".panel").isVisible());
		await page.keyboard.press("Enter"); // the keyboard focus is on the first finding
		await selected(page, id => id === cause);
		await close(page);
	},

	async "bar reports missing events of a trace"() {
		const page = await open(file("cut.html"));
		await page.locator(".bar").waitFor();
		assert.match(await page.locator(".bar").textContent(), /The program did not end this trace|could not be read/);
		await page.locator(".bar button").click();
		assert.ok(await page.locator(".bar").isHidden());
		await close(page);
	},

	async "two traces are shown one above the other and searched together"() {
		const page = await open(file("two.html"));
		assert.deepEqual(await page.locator(".titles h2").allTextContents(), ["arp-good", "arp-bad"]);
		await find(page, "ring.write");
		await eventually("yellow in both", async () => {
			const {width, height, rgb} = unpack(await shot(page, ".surface"));
			const halves = [0, 0];
			for (let i = 0; i < rgb.length; i += 3)
				halves[i / 3 / width < height / 2 ? 0 : 1] += rgb[i] > 250 && Math.abs(rgb[i + 1] - 0xdd) < 4 && Math.abs(rgb[i + 2] - 0x33) < 4;
			return halves[0] > 5 && halves[1] > 5;
		});
		await close(page);
	},

	async "two processes share one picture"() {
		const page = await open(file("together.html"));
		assert.match(await page.title(), /^arp-good and 1 more/);
		assert.equal(await page.locator(".titles h2:visible").count(), 0);
		const all = Number(/([\d,]+) events/.exec(await page.locator(".header .facts").textContent())[1].replaceAll(",", ""));
		const each = name => JSON.parse(String(run(weft, "info", "--json", name)).split("\n")[0]).events;
		assert.ok(all >= each("arp-good") + each("arp-bad"), `${all} events of both`);
		await close(page);
	},

	async "two fingers zoom, one pans, a long press opens the menu"() {
		const page = await open(`${file("one.html")}#t=0..1s`, {hasTouch: true, isMobile: true, viewport: {width: 390, height: 780}});
		const touch = await fingers(page);
		const whole = await seen(page);
		await touch("touchStart", [150, 300], [250, 300]);
		for (let i = 1; i <= 5; i++)
			await touch("touchMove", [150 - 20 * i, 300], [250 + 20 * i, 300]);
		await touch("touchEnd");
		const zoomed = await seen(page, ({span}) => span < whole.span / 2);
		await dragFinger(page, touch, [200, 300], -100);
		await seen(page, ({from}) => from > zoomed.from);
		await touch("touchStart", [200, 400]);
		await page.locator(".popup").waitFor();
		await touch("touchEnd");
		await close(page);
	},

	async "page is dark on a dark desktop"() {
		const page = await open(file("one.html"), {colorScheme: "dark"});
		await eventually("a dark ground", async () => await count(page, 0x14161b, ".surface") > 20000);
		await page.emulateMedia({colorScheme: "light"});
		await eventually("a light one", async () => await count(page, 0xdcdfe5, ".surface") > 20000);
		await close(page);
	},

	async "dropped trace is opened, and another file is reported"() {
		const page = await open(file("one.html"));
		const before = await still(page, ".surface");
		await drop(page, "dropped.ctf", readFileSync(at("few.ctf")));
		await page.getByRole("application", {name: "Promises of dropped.ctf"}).waitFor();
		const few = await redrawn(page, before, ".surface");
		await drop(page, "letter.txt", "Dear weft,");
		const message = page.getByRole("alert").filter({hasText: /^letter.txt: /});
		await message.waitFor();
		assert.ok(await count(page, 0xffffff, ".message") > 1000, "it can be read: it has a ground of its own");
		await message.getByRole("button", {name: "Close"}).click();
		await message.waitFor({state: "hidden"});
		assert.deepEqual(await still(page, ".surface"), few, "the open trace stays");
		await find(page, "pending");
		await page.keyboard.press("Escape"); // the finder
		await drop(page, "letter.txt", "Dear weft,");
		await message.waitFor();
		await page.keyboard.press("Escape");
		await message.waitFor({state: "hidden"});
		await close(page);
	},

	async "second of two dropped files is shown"() {
		const page = await open(file("one.html"));
		await drop(page, "first.ctf", readFileSync(at("few.ctf")));
		await drop(page, "second.ctf", readFileSync(at("few.ctf")));
		await page.getByRole("application", {name: "Promises of second.ctf"}).waitFor();
		await page.locator(".message").waitFor({state: "hidden"});
		assert.equal(await page.locator(".titles h2").count(), 0, "there is one");
		await close(page);
	},

	async "hostile labels are shown as text, and emoji are drawn"() {
		const page = await open(file("hostile.html"));
		assert.ok((await page.title()).startsWith(HOSTILE_NAME));
		await find(page, "shorter:100s");
		await until(page, () => document.querySelectorAll(".results button").length === 5);
		const lines = (await page.locator(".results button").allTextContents()).join("\n");
		for (const label of HOSTILE_LABELS)
			assert.ok(lines.includes(label), `${label} in ${lines}`);
		assert.equal(await page.locator("img").count(), 0);
		await close(page);
	},

	async "page reports a damaged trace"() {
		const page = await open(file("damaged.html"));
		assert.match(await page.locator(".message.failed").textContent(), /^arp-bad: /);
		await close(page);
	},

	async "page in a directory requests only its own files"() {
		const server = await serveFolder(at("served")), {url} = server;
		const page = await open(url);
		await eventually("a red line", async () => await count(page, RED) > 50);
		assert.deepEqual(page.requests.map(request => request.slice(url.length)).sort(),
			["", "trace-1.gz", "trace-2.gz", "weft.js"]);
		await close(page);
		server.close();
	},

	async "page draws the same lines as the native core"() {
		for (const where of ["", "t=0..20us", "t=1us..1.1ms&find=longer:10us", "t=0..3us&metrics=0&y=3"]) {
			const page = await open(`${file("few.html")}#${where}`, {init: overhear});
			const {width, height} = await page.locator(canvas).boundingBox();
			const wanted = run(frame, "few.ctf", String(width), String(height), where).toString().trimEnd().split("\n");
			assert.ok(wanted.length > 50, `${wanted.length} lines`);
			const told = () => page.evaluate(() => [...document.querySelectorAll(".surface canvas")].flatMap(one => globalThis.told.get(one)));
			try {
				await eventually("the same", async () => (await told()).join("\n") === wanted.join("\n"));
			} catch {
				assert.deepEqual(await told(), wanted, `${where}, at ${page.url()}`);
			}
			await close(page);
		}
	},

	async "list of keys is complete and starts at its top"() {
		const page = await open(file("one.html"));
		await page.keyboard.press("?");
		const dialog = page.getByRole("dialog", {name: "Keys and gestures"});
		await dialog.waitFor();
		const top = await dialog.getByRole("heading", {level: 2}).boundingBox(), box = await dialog.boundingBox();
		assert.ok(top.y > box.y && top.y < box.y + 60, `the title at ${top.y}, the dialog at ${box.y}`);
		for (const text of ["Drag in the overview", "Find\u2026", "Next match", "Ctrl+Shift+o"])
			assert.equal(await dialog.getByText(text, {exact: !text.startsWith("Ctrl")}).count(), 1, text);
		// on a small screen all are seen at once, in groups, and can be searched
		await page.setViewportSize({width: 1280, height: 720});
		const small = await dialog.boundingBox();
		assert.ok(small.y >= 0 && small.y + small.height <= 720 && await dialog.evaluate(element => element.scrollHeight <= element.clientHeight + 1), JSON.stringify(small));
		assert.ok(await dialog.getByRole("heading", {level: 3}).count() >= 6);
		await dialog.getByRole("searchbox").fill("next match");
		assert.deepEqual(await dialog.locator("dd").allTextContents(), ["Next match"]);
		await page.keyboard.press("Escape");
		await page.keyboard.press("Escape");
		await dialog.waitFor({state: "hidden"});
		await close(page);
	},
};
