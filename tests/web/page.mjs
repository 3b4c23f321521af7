// The page as a person uses it.  SPDX-License-Identifier: ISC
import assert from "node:assert/strict";
import {readFileSync, writeFileSync} from "node:fs";
import {at, close, drop, file, fingers, found, frame, generate, open, picture, place, record, run, selected, serveFolder, times, until, weft} from "./drive.mjs";

// Promises with labels that are not nice, each on its own.
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
	run(weft, "html", "cut.ctf", "-o", "cut.html");
	run(weft, "html", "arp-bad", "-o", "one.html");
	run(weft, "html", "arp-good", "arp-bad", "-o", "two.html");
	run(weft, "html", "arp-good", "arp-bad", "-o", "served");
	writeFileSync(at(HOSTILE_NAME), hostileTrace());
	run(weft, "html", HOSTILE_NAME, "-o", "hostile.html");
	const page = readFileSync(at("one.html"), "latin1");
	const trace = page.indexOf('class="trace"'), start = page.indexOf(">", trace) + 1;
	writeFileSync(at("damaged.html"), `${page.slice(0, start + 200)}AAAAAAAA${page.slice(start + 208)}`, "latin1");
}

export const tests = {
	async "one file asks for nothing else, and draws"() {
		const page = await open(file("one.html"));
		assert.deepEqual(page.requests.map(url => url.split("/").pop()), ["one.html"]);
		assert.ok(await picture(page) > 5000, "something is drawn");
		assert.match(await page.title(), /^arp-bad/);
		await close(page);
	},

	async "the wheel zooms at the pointer, dragging pans, Home shows all"() {
		const page = await open(file("one.html"));
		await page.keyboard.press("Home");
		const whole = await times(page);
		await page.mouse.move(500, 300);
		await page.mouse.wheel(0, -300);
		const zoomed = await times(page);
		assert.notEqual(zoomed, whole);
		await page.mouse.down();
		await page.mouse.move(300, 300, {steps: 4});
		await page.mouse.up();
		assert.notEqual(await times(page), zoomed);
		await page.keyboard.press("Home");
		assert.equal(await times(page), whole);
		await close(page);
	},

	async "searching counts, lists and goes from match to match; nonsense is told"() {
		const page = await open(file("one.html"));
		await page.keyboard.press("/");
		await page.keyboard.type("ARP response");
		await until(page, () => /[1-9]\d* found/.test(document.querySelector(".finder output").textContent));
		await page.keyboard.press("Enter");
		await until(page, () => /^\d+ of/.test(document.querySelector(".finder output").textContent));
		await page.waitForSelector(".results button");
		assert.match(await page.locator(".results button").first().textContent(), /ARP response/);
		await page.locator(".finder input").fill("longer:nonsense");
		await until(page, () => document.querySelector(".finder .wrong").textContent !== "");
		assert.equal(await found(page), 0);
		await page.keyboard.press("Escape");
		assert.ok(await page.locator(".finder").isHidden());
		await close(page);
	},

	async "the address says where one is, and leads there; back goes back"() {
		const url = file("one.html");
		let page = await open(url);
		await page.keyboard.press("/");
		await page.keyboard.type("failed");
		await page.keyboard.press("Enter");
		await until(page, () => location.hash.includes("find=failed") && location.hash.includes("sel="));
		const there = page.url();
		await page.keyboard.press("Escape");
		await page.keyboard.press("Escape");
		await page.keyboard.press("Escape");
		await until(page, () => !location.hash.includes("find="));
		await page.goBack();
		await until(page, () => weft.stage.core.call.found(weft.stage.surface.active) > 0);
		await close(page);
		page = await open(there);
		assert.ok(await found(page) > 0);
		assert.notEqual(await selected(page), 0xffffffff);
		assert.equal(`#${await place(page)}`, new URL(there).hash);
		await close(page);
	},

	async "the menu is at the bottom left, opens by mouse and closes by Escape; a right click has one too"() {
		const page = await open(file("one.html"));
		const box = await page.locator(".menu-button").boundingBox();
		assert.ok(box.x < 50 && box.y > 500);
		await page.locator(".menu-button").click();
		assert.ok(await page.getByRole("menuitem", {name: /Export as SVG/}).isVisible());
		await page.keyboard.press("Escape");
		assert.ok(await page.locator(".popup").isHidden());
		await page.mouse.click(500, 300, {button: "right"});
		assert.ok(await page.getByRole("menuitem", {name: /Show the whole trace/}).isVisible());
		await close(page);
	},

	async "a counter is switched off in the menu, all of them by space"() {
		const page = await open(file("one.html"));
		await page.locator(".menu-button").click();
		const item = page.getByRole("menuitemcheckbox", {name: "tcp-to-ip"});
		assert.equal(await item.getAttribute("aria-checked"), "true");
		await item.click();
		await page.locator(".menu-button").click();
		assert.equal(await item.getAttribute("aria-checked"), "false");
		await page.keyboard.press("Escape");
		const shown = await picture(page);
		await page.keyboard.press("Space");
		assert.match(await place(page), /metrics=0/);
		assert.ok(shown > 0);
		await close(page);
	},

	async "what is seen is exported as SVG and PNG"() {
		const page = await open(file("one.html"));
		for (const [name, magic] of [["SVG", "<svg"], ["PNG", "\x89PNG"]]) {
			await page.locator(".menu-button").click();
			const [download] = await Promise.all([
				page.waitForEvent("download"), page.getByRole("menuitem", {name: `Export as ${name}`}).click()]);
			assert.equal(download.suggestedFilename(), `arp-bad.${name.toLowerCase()}`);
			const text = readFileSync(await download.path()).toString("latin1");
			assert.ok(text.slice(0, 200).includes(magic), text.slice(0, 40));
		}
		await close(page);
	},

	async "the panel tells of the selected promise, its links lead on, findings name the lost wake-up"() {
		const page = await open(file("one.html"));
		await page.keyboard.press("/");
		await page.keyboard.type("failed");
		await until(page, () => /[1-9]\d* found/.test(document.querySelector(".finder output").textContent));
		await page.keyboard.press("Enter");
		await page.keyboard.press("Escape");
		await page.locator(".panel .finding").first().waitFor();
		assert.match(await page.locator(".panel .finding").first().textContent(), /ARP response/);
		const before = await selected(page);
		await page.locator(".panel section").first().locator(".link").first().click();
		assert.notEqual(await selected(page), before);
		await page.keyboard.press("Alt+ArrowLeft");
		assert.equal(await selected(page), before);
		await page.getByRole("button", {name: "Why?"}).click();
		assert.match(await page.locator(".panel section").first().textContent(), /ARP response/);
		const whole = await times(page);
		await page.locator(".panel .finding h4 .link").last().click();
		assert.notEqual(await selected(page), before, "the end of its chain is selected");
		assert.notEqual(await times(page), whole, "it is shown where it happened");
		const cause = await selected(page);
		await page.locator(".panel .finding li .link", {hasText: "signals condition"}).last().click();
		assert.notEqual(await selected(page), cause, "who signalled is selected");
		await page.locator(".panel .close").click();
		assert.ok(await page.locator(".panel").isHidden());
		await close(page);
	},

	async "what is missing in a trace is told in a bar"() {
		const page = await open(file("cut.html"));
		await page.locator(".bar").waitFor();
		assert.match(await page.locator(".bar").textContent(), /\w/);
		await page.locator(".bar button").click();
		assert.ok(await page.locator(".bar").isHidden());
		await close(page);
	},

	async "two traces stand one above the other and are searched together"() {
		const page = await open(file("two.html"));
		assert.deepEqual(await page.locator(".titles h2").allTextContents(), ["arp-good", "arp-bad"]);
		await page.keyboard.press("/");
		await page.keyboard.type("ring.write");
		await until(page, () => {
			const {core} = weft.stage;
			return core.call.found(core.call.viewer(0)) > 0 && core.call.found(core.call.viewer(1)) > 0;
		});
		await close(page);
	},

	async "two fingers zoom, one pans, a long press has the menu"() {
		const page = await open(file("one.html"), {hasTouch: true, isMobile: true, viewport: {width: 390, height: 780}});
		const touch = await fingers(page);
		const whole = await times(page);
		await touch("touchStart", [150, 300], [250, 300]);
		for (let i = 1; i <= 5; i++)
			await touch("touchMove", [150 - 20 * i, 300], [250 + 20 * i, 300]);
		await touch("touchEnd");
		const zoomed = await times(page);
		assert.notEqual(zoomed, whole);
		await touch("touchStart", [200, 300]);
		for (let i = 1; i <= 5; i++)
			await touch("touchMove", [200 - 20 * i, 300]);
		await touch("touchEnd");
		assert.notEqual(await times(page), zoomed);
		await touch("touchStart", [200, 400]);
		await page.locator(".popup").waitFor();
		await touch("touchEnd");
		await close(page);
	},

	async "dark where the desktop is dark"() {
		const page = await open(file("one.html"), {colorScheme: "dark"});
		assert.ok(await page.locator(".weft.dark").count());
		const [red] = await page.evaluate(() => [...weft.stage.surface.context.getImageData(5, 300, 1, 1).data]);
		assert.ok(red < 80, `the background is ${red}`);
		await close(page);
	},

	async "a file that is dropped is opened, one that is no trace is told of"() {
		const page = await open(file("one.html"));
		await drop(page, "dropped.ctf", readFileSync(at("few.ctf")));
		await until(page, () => weft.stage.names[0] === "dropped.ctf");
		await drop(page, "letter.txt", "Dear weft,");
		await until(page, () => document.querySelector(".message.failed")?.textContent.startsWith("letter.txt: "));
		await close(page);
	},

	async "of two files dropped one upon the other the second one stays"() {
		const page = await open(file("one.html"));
		await drop(page, "first.ctf", readFileSync(at("few.ctf")));
		await drop(page, "second.ctf", readFileSync(at("few.ctf")));
		await until(page, () => weft.stage.names.join() === "second.ctf" && weft.stage.surface.count === 1 && weft.stage.message.hidden);
		await close(page);
	},

	async "hostile names and labels are texts; right to left and emoji are shown"() {
		const page = await open(file("hostile.html"));
		assert.ok((await page.title()).startsWith(HOSTILE_NAME));
		await page.keyboard.press("/");
		await page.keyboard.type("shorter:100s");
		await until(page, () => document.querySelectorAll(".results button").length === 5);
		const lines = (await page.locator(".results button").allTextContents()).join("\n");
		for (const label of HOSTILE_LABELS)
			assert.ok(lines.includes(label), `${label} in ${lines}`);
		assert.equal(await page.locator("img").count(), 0);
		await close(page);
	},

	async "damage is told in the page"() {
		const page = await open(file("damaged.html"));
		assert.match(await page.locator(".message.failed").textContent(), /^arp-bad: /);
		await close(page);
	},

	async "a web server serves a directory, from which nothing else is asked"() {
		const server = await serveFolder(at("served")), {url} = server;
		const page = await open(url);
		assert.ok(await picture(page) > 5000);
		assert.deepEqual(page.requests.map(request => request.slice(url.length)).sort(), ["", "trace-1.gz", "trace-2.gz", "weft.js"]);
		await close(page);
		server.close();
	},

	async "draw lists are the native ones, byte for byte"() {
		const page = await open(file("one.html"));
		await page.evaluate(() => {
			weft.stage.surface.measured = false;
		});
		await drop(page, "few.ctf", readFileSync(at("few.ctf")));
		await until(page, () => weft.stage.names[0] === "few.ctf" && weft.stage.surface.count === 1);
		for (const where of ["", "t=0..20us", "t=1us..1.1ms&find=longer:10us", "t=0..3us&metrics=0&y=3"]) {
			const list = await page.evaluate(place => {
				const {core, surface} = weft.stage;
				core.withText(place, text => surface.ask("go", text));
				while (core.call.weft_compare_search_step(surface.compare, 1000))
					;
				return [0, 1, 2, 3, 4].map(pane => core.cstring(core.call.dump(surface.active, pane))).join("");
			}, where);
			assert.equal(list, run(frame, "few.ctf", "1000", "600", where).toString(), where);
		}
		await close(page);
	},
};
