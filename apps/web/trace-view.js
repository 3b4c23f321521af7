/* An element that shows traces, one above the other, with menu, search, panel and dialogs around them. */

const {ENABLED, IS_SWITCH, ON} = STATE;
const PRINT_RATIO = 3; /* pixels of the paper for each pixel of the screen */
const ROOMY_PX = 1100; /* from this width on, the panel is open from the start */
const ROWS = {PANEL: 0, FINDINGS: 1, NOTES: 2, TABLE: 3, MATCHES: 4, LIVE: 5, SUMMARY: 6}; /* the order in core.c */

function closeButton(act) {
	const button = create("button", {type: "button", className: "close", textContent: "\u2715", title: "Close", ariaLabel: "Close"});
	button.addEventListener("click", act);
	return button;
}

/* Returns a header of an archive in the format ustar. */
function tarHeader(name, size) {
	if (name.length > 100)
		throw new Error(`${name}: the name is too long`);
	const header = new Uint8Array(512), put = (at, text) => header.set(new TextEncoder().encode(text), at);
	put(0, name);
	put(124, size.toString(8).padStart(11, "0"));
	put(148, "        0");
	put(257, "ustar\x0000");
	put(148, `${header.reduce((sum, byte) => sum + byte, 0).toString(8).padStart(6, "0")}\0`);
	return header;
}

/* Returns the pieces of an archive of a dropped folder. */
async function packFolder(folder, path = "") {
	const pieces = [];
	for await (const [name, entry] of folder.entries()) {
		if (entry.kind === "directory") {
			pieces.push(...await packFolder(entry, `${path}${name}/`));
			continue;
		}
		const file = await entry.getFile();
		pieces.push(tarHeader(path + name, file.size), file, new Uint8Array(-file.size & 511));
	}
	return pieces;
}

class Stage {
	constructor(element) {
		this.element = element;
		this.surface = new Surface(this);
		this.names = [];
		this.dark = matchMedia("(prefers-color-scheme: dark)");
		this.ending = new AbortController();
		const {signal} = this.ending;
		this.dark.addEventListener("change", () => this.retheme(), {signal});
		addEventListener("beforeprint", () => this.print(), {signal});
		addEventListener("afterprint", () => this.paper?.remove(), {signal});
		this.build();
		element.classList.add("weft");
		element.replaceChildren(this.header, this.surface.element, this.titles, this.message, this.menuButton, this.corner, this.finder, this.panel, this.grip, this.popup,
			this.dialog, this.status);
		element.addEventListener("keydown", event => this.key(event), {signal});
		/* a ring around the whole page is shown only while the Tab key is used */
		element.addEventListener("keyup", event => element.classList.toggle("tabbing", event.key === "Tab"), {signal});
		element.addEventListener("dragover", event => event.preventDefault(), {signal});
		element.addEventListener("drop", event => this.dropped(event), {signal});
		this.retheme();
	}

	get theme() {
		return this.dark.matches && !this.printing ? 1 : 0;
	}

	get core() {
		return this.surface.core;
	}

	/* Prints the visible picture, light and sharp, and the texts about it. */
	print() {
		this.paper?.remove();
		this.paper = create("div", {className: "paper"}, create("h1", {textContent: this.title.textContent}), create("p", {textContent: this.facts.textContent}));
		if (this.surface.count) {
			this.printing = true;
			this.paper.append(this.surface.renderWhole(PRINT_RATIO));
			this.printing = false;
			this.surface.drawSoon();
			for (const [which, fill] of [this.rowsOfAbout(), [ROWS.FINDINGS, "findings"]])
				for (let count = this.core.call[fill](this.surface.active), i = 0; i < count; i++) {
					const [kind, , , , name, value] = this.core.cstring(this.core.call.row(which, i)).split("\n");
					if (["answer", "more", "nothing"].includes(kind))
						continue;
					const line = create({title: "h2", summary: "h2", heading: "h3"}[kind] ?? "p", {className: kind}, name);
					if (value)
						line.append(" ", create("small", {textContent: value}));
					this.paper.append(line);
				}
		}
		this.element.append(this.paper);
	}

	retheme() {
		this.element.classList.toggle("dark", this.dark.matches);
		this.surface.drawSoon();
	}

	/* Adds a trace below the others, or instead of them; `source` is a ReadableStream or a promise of one.  Returns whether it could be
	 * opened. */
	async add(source, name, size = 0, instead = false) {
		if (this.surface.closed)
			return false;
		const {generation} = this.surface, showProgress = events => this.showMessage(`Opening ${name}: ${(events / 1e6).toFixed(1)} million events`);
		this.showMessage(`Opening ${name}\u2026`);
		try {
			const stream = await source;
			if (generation !== this.surface.generation)
				return false;
			if (!await this.surface[instead ? "openInstead" : "open"](stream, name, size, showProgress)) {
				if (generation === this.surface.generation)
					this.showMessage(`${name}: reading was cancelled`, true);
				return false;
			}
		} catch (error) {
			if (generation !== this.surface.generation)
				return false;
			this.showMessage(error.message.startsWith(name) ? error.message : `${name}: ${error.message}`, true);
			return false;
		}
		this.showMessage("");
		if (instead)
			this.forgetTraces();
		this.names.push(name);
		this.start?.remove();
		if (!this.actions)
			this.readActions();
		this.surface.canvas.setAttribute("aria-label", `Promises of ${this.names.join(" and ")}`);
		this.showHeader();
		this.placeTitles();
		this.showNotes();
		if (this.panel.hidden && !this.panelClosed && this.element.clientWidth >= ROOMY_PX)
			this.togglePanel(true);
		this.start?.opened();
		this.start = null;
		return true;
	}

	/* Asks for a trace, until one is open. */
	showStart(opened) {
		const button = create("button", {type: "button", textContent: "Open a trace\u2026"});
		button.addEventListener("click", () => this.chooseFile());
		this.start = create("div", {className: "start", opened}, create("h1", {textContent: "weft"}),
			create("p", {textContent: "Drop a trace or a folder of traces here, or choose a file."}), button,
			create("p", {className: "facts", textContent: "This page reads the file in your browser and sends it nowhere."}));
		this.element.append(this.start);
		button.focus();
	}

	/* Shows a newer version of a trace; place, selection and search are kept.  Returns whether it is shown. */
	async renew(place, source, size) {
		this.renewing = true;
		try {
			const renewed = await this.surface.open(await source, this.names[place], size, () => {}, place);
			this.showHeader();
			this.showNotes();
			return renewed;
		} finally {
			this.renewing = false;
		}
	}

	/* Shows a place, written as in the fragment of an address.  Returns an error message, or "". */
	go(place) {
		if (!this.surface.count)
			return "no trace is open";
		const wrong = this.core.withText(place, at => this.surface.ask("go", at));
		this.surface.continueSearch();
		return wrong;
	}

	/* Shows a message.  An error stays until the user closes it. */
	showMessage(text, failed = false) {
		this.messageText.textContent = text;
		this.message.hidden = !text;
		this.message.classList.toggle("failed", failed);
	}

	/* Forgets what belonged to the traces before. */
	forgetTraces() {
		clearTimeout(this.listing);
		this.names = [];
		this.dismissed = null;
		this.panel.hidden = this.bar.hidden = true;
		this.panelClosed = this.listsFindings = false;
		this.follower?.stop();
		this.follower = null;
		this.live.hidden = true;
		this.element.classList.remove("with-panel");
	}

	close() {
		this.follower?.stop();
		this.ending.abort();
		clearTimeout(this.listing);
		this.surface.close();
		this.element.replaceChildren();
		this.element.classList.remove("weft", "dark", "tabbing", "with-panel");
	}

	/* Shows the name of each trace beside it, if there are several. */
	placeTitles() {
		const titles = this.names.length > 1 ? this.names : [];
		this.titles.replaceChildren(...titles.map((name, number) => {
			const title = create("h2", {textContent: name});
			title.style.top = `${this.surface.element.offsetTop + this.core.call.top(number)}px`;
			return title;
		}));
	}

	/* ---- Parts ---- */

	/* Returns a button for an action of the viewer. */
	actionButton(action, properties) {
		const button = create("button", {type: "button", ...properties});
		button.dataset.action = action;
		button.addEventListener("click", () => this.perform(action));
		return button;
	}

	buildHeader() {
		this.title = create("strong");
		this.facts = create("span", {className: "facts"});
		this.findingsButton = this.actionButton("findings", {className: "sign", hidden: true});
		this.header = create("header", {className: "header"}, this.title, this.facts,
			this.actionButton("find", {textContent: "Find"}), this.findingsButton, this.actionButton("panel", {textContent: "Panel"}));
	}

	/* Shows the names and sizes of the traces. */
	showHeader() {
		this.title.textContent = this.names.join(" \u2215 ") || "weft";
		this.facts.textContent = this.names.length > 1 ? "compared, one above the other" :
			this.surface.count ? this.surface.ask("summary", this.surface.active) : "";
	}

	build() {
		this.buildHeader();
		this.titles = create("div", {className: "titles"});
		this.messageText = create("p");
		this.message = create("div", {className: "message", hidden: true}, this.messageText, closeButton(() => {
			this.surface.cancelOpening();
			this.showMessage("");
			this.surface.canvas.focus();
		}));
		this.message.setAttribute("role", "alert");
		this.menuButton = create("button", {className: "menu-button", textContent: "\u2630", title: "Menu", type: "button"});
		this.menuButton.setAttribute("aria-haspopup", "menu");
		this.menuButton.setAttribute("aria-label", "Menu");
		this.menuButton.addEventListener("click", () => this.openMainMenu());
		this.popup = create("div", {className: "popup", hidden: true});
		this.popup.setAttribute("role", "menu");
		this.popup.addEventListener("keydown", event => this.menuKey(event));
		this.popup.addEventListener("focusout", event => {
			if (!this.popup.contains(event.relatedTarget))
				this.popup.hidden = true;
		});
		this.status = create("p", {className: "status"});
		this.status.setAttribute("role", "status");
		this.dialog = create("dialog");
		this.about = create("section", {className: "found", tabIndex: -1});
		this.about.setAttribute("aria-live", "polite");
		this.findings = create("section", {className: "found"});
		this.listButton = this.actionButton("findings", {textContent: "List all findings", hidden: true});
		this.typeFilter = create("input", {type: "search", placeholder: "Filter types by name", ariaLabel: "Filter types by name", hidden: true});
		this.typeFilter.addEventListener("keydown", event => event.stopPropagation());
		this.typeFilter.addEventListener("input", () => this.core.withText(this.typeFilter.value, at => this.surface.act("filter_types", this.surface.active, at)));
		this.groups = create("section");
		this.inFlight = create("section", {ariaLabel: "Live"});
		this.panel = create("aside", {className: "panel", hidden: true}, closeButton(() => this.togglePanel(false)), this.about, this.listButton, this.findings, this.typeFilter, this.groups, this.inFlight);
		this.grip = create("div", {className: "grip"});
		this.grip.addEventListener("pointerdown", event => this.grip.setPointerCapture(event.pointerId));
		this.grip.addEventListener("pointermove", event => {
			if (this.grip.hasPointerCapture(event.pointerId))
				this.element.style.setProperty("--panel", `${this.widthOfPanel(event.clientX)}px`);
		});
		this.panel.setAttribute("aria-label", "The selected promise, and findings");
		this.bar = create("div", {className: "bar", hidden: true});
		this.bar.setAttribute("role", "status");
		this.live = create("button", {className: "live", type: "button", hidden: true});
		this.live.addEventListener("click", () => this.follower.hold(!this.follower.held));
		this.corner = create("div", {className: "corner"}, this.live, this.bar);
		this.buildFinder();
		this.showHeader();
	}

	buildFinder() {
		this.findText = create("input", {type: "search", placeholder: "Find: text, type:request, > 20ms, slowest:10, thread:pool, failed", spellcheck: false});
		this.findText.setAttribute("aria-label", "Find promises");
		this.findCount = create("output");
		this.findError = create("p", {className: "wrong"});
		this.results = create("div", {className: "results", ariaLabel: "Matches"});
		this.results.setAttribute("role", "group");
		this.finder = create("search", {className: "finder", hidden: true},
			create("div", {className: "line"}, this.findText, this.findCount, this.actionButton("previous-match", {textContent: "\u2191"}),
				this.actionButton("next-match", {textContent: "\u2193"}), this.actionButton("sort-matches", {textContent: "Sort"}), this.actionButton("filter", {textContent: "Dim others"}), closeButton(() => this.closeFinder())),
			this.findError, this.results);
		this.findText.addEventListener("input", () => this.find(this.findText.value));
		this.finder.addEventListener("keydown", event => {
			event.stopPropagation();
			if (event.key === "Escape")
				this.closeFinder();
			else if (event.key === "Enter" && event.target === this.findText)
				this.perform(event.shiftKey ? "previous-match" : "next-match");
			else if (event.key === "ArrowDown" || event.key === "ArrowUp")
				this.walkResults(event.key === "ArrowDown" ? 1 : -1);
			else
				return;
			event.preventDefault();
		});
	}

	/* Moves the focus from the text down to the selected match or the first one, and from match to match. */
	walkResults(step) {
		const matches = [...this.results.querySelectorAll("button")], at = matches.indexOf(document.activeElement);
		if (at < 0 && step > 0)
			(matches.find(match => match.dataset.open) ?? matches[0])?.focus();
		else
			(matches[at + step] ?? (step < 0 ? this.findText : matches[at]))?.focus();
	}

	readActions() {
		const core = this.core;
		this.actions = [];
		this.gestures = [];
		for (let number = 0; number < core.call.gesture_count(); number++) {
			const [keys, label] = core.cstring(core.call.gesture(number)).split("\n");
			this.gestures.push({keys, label});
		}
		for (let number = 0; number < core.call.action_count(); number++) {
			const [name, label, keys, group, who, menus] = core.cstring(core.call.action(number)).split("\n");
			this.actions.push({number, name, label, keys, group, byApp: Number(who) === BY.APP, menus: Number(menus)});
		}
		for (const button of this.element.querySelectorAll("[data-action]"))
			button.title = this.actions.find(action => action.name === button.dataset.action)?.label ?? "";
	}

	/* ---- Actions ---- */

	key(event) {
		if (event.key === "Escape" && this.message.classList.contains("failed") && !this.message.hidden) {
			this.showMessage("");
			event.preventDefault();
			return;
		}
		if (!this.surface.count || event.target.closest("input, dialog, .popup"))
			return;
		const key = event.key === " " ? "Space" : event.key;
		const number = this.core.withText(key, at => this.core.call.weft_action_of_key(at, modifiers(event)));
		if (this.actions[number] && this.perform(this.actions[number].name))
			event.preventDefault();
	}

	state(action) {
		return this.surface.count ? this.core.call.weft_compare_action_state(this.surface.compare, action.number) : 0;
	}

	/* Performs an action; returns whether it had an effect. */
	perform(name) {
		const action = this.actions.find(candidate => candidate.name === name);
		/* If the browser's history has all places, these keys have the same effect as the browser's buttons. */
		if (this.walkHistory && (name === "forward" || name === "back" && this.state(action) & ENABLED)) {
			this.walkHistory(name === "back" ? -1 : 1);
			return true;
		}
		if (!action || !(this.state(action) & ENABLED))
			return false;
		if (!action.byApp) {
			this.surface.actAll("weft_compare_act", action.number);
			return true;
		}
		const own = {
			"open": () => this.chooseFile(false),
			"reload": this.follower && (() => this.follower.refreshAll(true)),
			"compare": () => this.chooseFile(true),
			"export-svg": () => this.exportSvg(),
			"export-png": () => this.exportPng(),
			"copy-link": () => this.copyLink(),
			"go-time": () => this.askTime("Go to", "go_time"),
			"set-start": () => this.askTime("Start of the picture", "set_start"),
			"set-duration": () => this.askTime("Duration of the picture", "set_duration"),
			"panel": () => this.togglePanel(),
			"findings": () => this.listFindings(),
			"table": () => this.showGroups(),
			"live": () => this.showInFlight(true),
			"find": () => this.openFinder(),
			"shortcuts": () => this.showKeys(),
		}[name];
		own?.();
		return Boolean(own);
	}

	/* Handles changes that the surface reports. */
	changed(changes) {
		if (!this.surface.count)
			return;
		if (changes & CHANGED.MENU)
			this.openContextMenu();
		if (changes & CHANGED.SETTING)
			this.showHeader();
		if (changes & (CHANGED.SEARCH | CHANGED.SELECTION))
			this.showFound();
		if (changes & (CHANGED.SELECTION | CHANGED.SETTING | CHANGED.FINDINGS))
			this.showSelected();
		if (changes & (CHANGED.SELECTION | CHANGED.SETTING | CHANGED.FINDINGS))
			this.showFindings();
		if (changes & CHANGED.SPAN && !this.panel.hidden)
			this.showGroups(false);
		if (changes & CHANGED.TABLE && !this.panel.hidden)
			this.showTypes();
		if (changes & (CHANGED.LIVE | CHANGED.SETTING))
			this.showInFlight();
		if (changes & CHANGED.ANSWER) {
			this.listsFindings = true;
			this.togglePanel(true);
		}
		if (changes & CHANGED.FINDINGS)
			this.surface.askQuestions();
		this.onchange?.(changes);
	}

	/* ---- Menus ---- */

	openPopup(items, x, y) {
		this.popup.replaceChildren(...items);
		this.popup.hidden = false;
		const {width, height} = this.element.getBoundingClientRect();
		this.popup.style.left = `${Math.max(4, Math.min(x, width - this.popup.offsetWidth - 4))}px`;
		this.popup.style.top = `${Math.max(4, Math.min(y, height - this.popup.offsetHeight - 4))}px`;
		this.popup.querySelector("[role^=menuitem]:not(:disabled)")?.focus();
	}

	menuItem(label, state, act, keys = "") {
		const item = create("button", {type: "button", disabled: !(state & ENABLED)}, create("span", {textContent: label}),
			create("kbd", {textContent: keys}));
		item.setAttribute("role", state & IS_SWITCH ? "menuitemcheckbox" : "menuitem");
		if (state & IS_SWITCH)
			item.setAttribute("aria-checked", String(Boolean(state & ON)));
		item.addEventListener("click", () => {
			this.popup.hidden = true;
			this.surface.canvas.focus();
			act();
		});
		return item;
	}

	actionItems(menu) {
		const items = [];
		let group = "";
		for (const action of this.actions.filter(candidate => candidate.menus & menu && (candidate.name !== "reload" || this.follower))) {
			if (group && action.group !== group)
				items.push(create("hr"));
			group = action.group;
			items.push(this.menuItem(action.label, this.state(action), () => this.perform(action.name), action.keys.split(" ")[0]));
		}
		return items;
	}

	openMainMenu() {
		if (!this.surface.count) {
			this.openPopup([this.menuItem("Open a trace\u2026", ENABLED, () => this.chooseFile(false))], 0, 40);
			return;
		}
		const viewer = this.surface.active, metrics = [];
		for (let counter = 0; counter < this.core.call.counters(viewer); counter++) {
			const shown = this.core.call.counter_shown(viewer, counter);
			metrics.push(this.menuItem(this.surface.ask("counter_name", viewer, counter), ENABLED | IS_SWITCH | (shown ? ON : 0),
				() => this.surface.act("weft_viewer_set_metric", viewer, counter, !shown)));
		}
		const follow = this.follower && this.menuItem("Follow the program", ENABLED | IS_SWITCH | (this.follower.held ? 0 : ON),
			() => this.follower.hold(!this.follower.held));
		this.openPopup([...this.actionItems(MENU.MAIN), ...(follow ? [create("hr"), follow] : []), ...(metrics.length ? [create("hr")] : []), ...metrics], 0, 40);
	}

	openContextMenu() {
		const viewer = this.surface.active;
		this.openPopup(this.actionItems(MENU.CONTEXT), this.core.call.menu_x(viewer),
			this.surface.element.offsetTop + this.core.call.menu_y(viewer));
	}

	menuKey(event) {
		event.stopPropagation();
		const items = [...this.popup.querySelectorAll("[role^=menuitem]:not(:disabled)")];
		const at = items.indexOf(document.activeElement);
		const to = {ArrowDown: at + 1, ArrowUp: at - 1 + items.length, Home: 0, End: items.length - 1}[event.key];
		if (event.key === "Escape" || event.key === "Tab") {
			this.popup.hidden = true;
			this.surface.canvas.focus();
		} else if (to !== undefined) {
			items[to % items.length]?.focus();
		} else {
			return;
		}
		event.preventDefault();
	}

	/* ---- Searching ---- */

	openFinder() {
		this.finder.hidden = false;
		this.findText.value = this.surface.ask("search_text", this.surface.active);
		this.findText.select();
		this.findText.focus();
	}

	/* Closes the search, and clears its matches. */
	closeFinder() {
		this.finder.hidden = true;
		this.findText.value = "";
		this.find("");
		this.surface.canvas.focus();
	}

	find(text) {
		this.findError.textContent = this.surface.search(text);
	}

	showFound() {
		const text = this.surface.ask("search_text", this.surface.active);
		this.findCount.textContent = this.surface.ask("matches_count");
		/* The search may have been started elsewhere, by a link or by "Find similar promises". */
		if (text && text !== this.findText.value && !this.findError.textContent) {
			this.findText.value = text;
			this.finder.hidden = false;
		}
		clearTimeout(this.listing);
		if (!this.finder.hidden)
			this.listing = setTimeout(() => this.surface.count && this.showRows(this.results, ROWS.MATCHES, "matches"), 100);
	}

	/* ---- The selected promise ---- */

	showSelected() {
		const viewer = this.surface.active, promise = this.core.call.selected(viewer) >>> 0;
		this.status.textContent = this.core.call.is_picked(viewer) ? this.surface.ask("describe", viewer) : "";
		if (promise !== NONE && this.panel.hidden && !this.panelClosed)
			this.togglePanel(true);
		if (!this.panel.hidden)
			this.showAbout();
	}

	/* Returns the rows that describe the selected promise; without one, the trace. */
	rowsOfAbout() {
		return this.core.call.selected(this.surface.active) >>> 0 === NONE ? [ROWS.SUMMARY, "summarize"] : [ROWS.PANEL, "panel"];
	}

	showAbout() {
		this.showRowsWhenReleased(this.about, () => this.rowsOfAbout());
	}

	/* Returns the width of the panel if its edge were at x; both the panel and the picture stay visible. */
	widthOfPanel(x) {
		const {right, width} = this.element.getBoundingClientRect();
		return Math.max(300, Math.min(right - x, width - 240));
	}

	togglePanel(shown = this.panel.hidden) {
		this.panel.hidden = !shown;
		this.panelClosed = !shown;
		this.element.classList.toggle("with-panel", shown);
		if (!shown || !this.surface.count)
			return;
		this.showAbout();
		this.showTypes();
		this.showInFlight();
		this.showFindings();
	}

	/* ---- Rows ---- */

	/* Shows the rows that the core makes when `fill` is called, in an element; rows with an effect are buttons.  If the rows
	 * are unchanged, the element is not touched; otherwise the keyboard focus stays on the same row. */
	showRows(element, which, fill) {
		const viewer = this.surface.active, rows = [];
		for (let count = this.core.call[fill](viewer), i = 0; i < count; i++)
			rows.push(this.core.cstring(this.core.call.row(which, i)));
		const same = rows.join("\n\n");
		if (element.shown === same && element.viewer === viewer)
			return;
		const focus = element.contains(document.activeElement) && document.activeElement.closest(".row");
		const called = row => row.dataset.kind + (+row.dataset.key ? row.dataset.key : row.querySelector(".name")?.textContent), said = focus?.textContent, before = focus && called(focus);
		Object.assign(element, {shown: same, viewer});
		let card = null;
		const parts = [];
		rows.forEach((row, number) => {
			const made = this.row(viewer, which, number, ...row.split("\n"));
			const isFigure = ["figure", "column"].includes(made.dataset.kind), inFigures = card?.matches(".figures");
			if (["finding", "type"].includes(made.dataset.kind))
				parts.push(card = create("div", {className: made.dataset.open ? "card open" : "card"}));
			else if (isFigure && !inFigures)
				parts.push(card = create("div", {className: `figures ${made.dataset.kind}s`}));
			else if (!isFigure && inFigures || ["more", "summary", "working", "sentence"].includes(made.dataset.kind) || made.dataset.kind === "heading" && !card?.matches(".open"))
				card = null;
			card ? card.append(made) : parts.push(made);
		});
		element.replaceChildren(...parts);
		element.querySelector("[aria-current]")?.scrollIntoView({block: "nearest"});
		if (!focus)
			return;
		const alike = [...element.querySelectorAll(".row")].filter(row => called(row) === before), again = alike.find(row => row.textContent === said) ?? alike[0];
		(again?.closest("button") ?? again?.querySelector("button") ?? this.surface.canvas).focus({preventScroll: true});
	}

	row(viewer, which, number, kind, tone, leads, open, name, value, depth, key, spoken) {
		const isButton = leads === "1" && !["title", "answer", "working", "nothing"].includes(kind);
		const made = create(isButton ? "button" : {title: "header", summary: "h3", heading: "h4"}[kind] ?? "div", {className: "row"});
		Object.assign(made.dataset, {kind, tone, key});
		if (open === "1")
			made.dataset.open = "yes";
		if (depth > 0)
			made.style.marginLeft = `${depth * 12 - 6}px`;
		const isType = which === ROWS.TABLE && kind === "finding", cells = value.split(" \u00b7 ");
		if (isType)
			made.dataset.kind = "type";
		const texts = [create("span", {className: "name", textContent: name}),
			isType ? create("span", {className: "value"}, ...cells.map((cell, at) => create("span", {textContent: at ? cell.slice(cell.indexOf(" ") + 1) : cell}))) :
				create("span", {className: "value", textContent: kind === "column" ? "" : value})];
		made.append(...(["finding", "evidence", "figure"].includes(kind) && !isType ? texts.reverse() : texts));
		const press = () => {
			/* a live row or a type has the same key in the newer version of the trace */
			const of = which === ROWS.LIVE || which === ROWS.TABLE && kind !== "link" ? this.surface.active : viewer;
			if (!this.surface.has(of))
				return;
			this.surface.act("press_row", of, which, number);
			this.surface.actAll("weft_compare_follow");
			if (which === ROWS.SUMMARY && kind === "finding")
				this.findings.querySelector("[data-open]")?.scrollIntoView({block: "nearest"});
		};
		if (isButton) {
			made.type = "button";
			made.ariaLabel = spoken;
			made.addEventListener("click", press);
			if (kind === "link" && open === "1")
				made.setAttribute("aria-current", "true");
			if (kind === "finding")
				made.ariaExpanded = String(open === "1");
		} else if (leads === "1") {
			const label = {title: "Why?", answer: value, working: "Cancel", nothing: "Analyse again"}[kind];
			const button = ["answer", "working"].includes(kind) ? closeButton(press) : create("button", {type: "button", textContent: label});
			Object.assign(button, {title: label, ariaLabel: label});
			if (!button.matches(".close"))
				button.addEventListener("click", press);
			made.append(button);
		}
		return made;
	}

	/* Lists the findings of the active trace; the number in the header counts those of all traces. */
	showFindings() {
		const found = this.core.call.weft_compare_findings(this.surface.compare).toLocaleString("en");
		this.findingsButton.textContent = `\u26a0 ${found}`;
		this.findingsButton.ariaLabel = `Findings: ${found}`;
		this.findingsButton.hidden = found === "0";
		this.findings.ariaBusy = String(this.surface.isAsking());
		if (!this.panel.hidden)
			this.showRowsWhenReleased(this.findings, () => [ROWS.FINDINGS, "findings"]);
		this.hideListedTwice();
		this.focusFinding();
	}

	/* Hides the list of findings while the summary above it has the most severe ones, unless the user asked for the list or opened
	 * a finding. */
	hideListedTwice() {
		const {about, findings} = this, told = !this.listsFindings && this.rowsOfAbout()[0] === ROWS.SUMMARY && !findings.querySelector("[data-open]");
		const twice = told && about.querySelector("[data-kind=finding]"), nothing = findings.querySelector("[data-kind=nothing]:not(:has(button))");
		findings.hidden = Boolean(twice || told && nothing);
		this.listButton.hidden = !twice;
	}

	/* Opens the table of types, with the focus on the first. */
	showGroups(focuses = true) {
		this.surface.act("weft_viewer_show_table", this.surface.active);
		this.togglePanel(true);
		this.groups.scrollIntoView();
		if (focuses)
			this.groups.querySelector("[data-kind=type]")?.focus({preventScroll: true});
	}

	showTypes() {
		this.showRowsWhenReleased(this.groups, () => [ROWS.TABLE, "types"]);
		this.typeFilter.hidden = !this.groups.querySelector("[data-kind=column]");
	}

	/* Like showRows(), for rows that change while a program is followed: a pressed button is kept, and stays where it is, until
	 * it is released. */
	showRowsWhenReleased(element, rows) {
		clearTimeout(element.later);
		if (this.panel.matches(":active"))
			element.later = setTimeout(() => this.surface.count && !this.panel.hidden && this.showRowsWhenReleased(element, rows), 50);
		else
			this.showRows(element, ...rows());
	}

	/* Shows promises in flight, once the user has asked for them; then the focus goes to the first. */
	showInFlight(asked = false) {
		if (asked)
			this.togglePanel(this.showsInFlight = true);
		if (!this.showsInFlight || this.panel.hidden)
			return;
		this.showRowsWhenReleased(this.inFlight, () => [ROWS.LIVE, "in_flight"]);
		if (!asked)
			return;
		this.inFlight.scrollIntoView();
		this.inFlight.querySelector("button")?.focus({preventScroll: true});
	}

	/* Opens the list of findings, with the focus on the first. */
	listFindings() {
		this.surface.actAll("weft_compare_show_findings");
		this.listsFindings = true;
		this.togglePanel(true);
		this.findings.scrollIntoView();
		this.asked = document.activeElement;
		this.focusFinding();
	}

	/* If the user asks before there are findings, focuses the first one when it arrives, unless the focus has moved
	 * meanwhile. */
	focusFinding() {
		const first = this.findings.querySelector("[data-kind=finding]");
		if (this.asked && this.asked !== document.activeElement)
			this.asked = null;
		if (!this.asked || !first || this.panel.hidden)
			return;
		this.asked = null;
		first.focus({preventScroll: true});
	}

	/* Shows notes about missing or contradictory parts of the traces, above the picture. */
	showNotes() {
		const notes = [];
		for (let trace = 0; trace < this.surface.count; trace++)
			for (let count = this.core.call.notes(this.surface.viewer(trace)), i = 0; i < count; i++) {
				const [, tone, , , text, meaning] = this.core.cstring(this.core.call.row(ROWS.NOTES, i)).split("\n");
				notes.push(create("p", {className: tone}, create("b", {textContent: text}), ` ${meaning}`));
			}
		const said = notes.map(note => note.textContent).join();
		const close = closeButton(() => {
			this.dismissed = said;
			this.bar.hidden = true;
		});
		this.bar.replaceChildren(create("div", {}, ...notes), close);
		this.bar.hidden = !notes.length || said === this.dismissed;
	}

	/* ---- Dialogs ---- */

	openDialog(title, ...content) {
		const close = create("button", {type: "button", textContent: "Close"});
		close.addEventListener("click", () => this.dialog.close());
		/* The focus goes to the first field, or else to the title; on the button it would scroll to the end of a long
		 * text. */
		const heading = create("h2", {textContent: title, tabIndex: -1, autofocus: true});
		this.dialog.replaceChildren(heading, ...content, create("footer", {}, close));
		this.dialog.setAttribute("aria-label", title);
		this.dialog.showModal();
		(this.dialog.querySelector("input, textarea") ?? heading).focus();
		this.dialog.scrollTop = 0;
	}

	askTime(title, name) {
		const input = create("input", {placeholder: "12.5ms", spellcheck: false});
		input.setAttribute("aria-label", title);
		const wrong = create("p", {className: "wrong"});
		const form = create("form", {}, input, create("button", {textContent: "Set"}), wrong);
		form.addEventListener("submit", event => {
			event.preventDefault();
			wrong.textContent = this.core.withText(input.value, at => this.surface.ask(name, this.surface.active, at));
			if (wrong.textContent)
				return;
			this.surface.actAll("weft_compare_follow");
			this.dialog.close();
		});
		this.openDialog(title, form);
	}

	showKeys() {
		const all = [...this.gestures.map(gesture => ({...gesture, group: "Pointer"})), ...this.actions.map(({keys, label, group}) => ({keys: keys.replaceAll(" ", ", "), label, group}))];
		const filter = create("input", {type: "search", placeholder: "Search keys", spellcheck: false}), list = create("div", {className: "keys"});
		const show = () => {
			const found = all.filter(({keys, label}) => `${keys} ${label}`.toLowerCase().includes(filter.value.toLowerCase()));
			list.replaceChildren(...[...new Set(found.map(({group}) => group))].map(group => create("section", {}, create("h3", {textContent: group}),
				create("dl", {}, ...found.filter(row => row.group === group).map(({keys, label}) =>
					create("div", {}, create("dt", {}, create("kbd", {textContent: keys})), create("dd", {textContent: label})))))));
		};
		filter.setAttribute("aria-label", "Search keys");
		filter.addEventListener("input", show);
		show();
		this.openDialog("Keys and gestures", create("div", {}, filter, list));
	}

	/* ---- Files ---- */

	chooseFile(beside) {
		const input = create("input", {type: "file"});
		input.addEventListener("change", () => this.openFiles([...input.files], beside));
		input.click();
	}

	/* A folder is opened as one trace.  The entries of a transfer are known only during its event. */
	async dropped(event) {
		event.preventDefault();
		const beside = event.shiftKey, files = [...event.dataTransfer.files];
		const items = [...event.dataTransfer.items].filter(item => item.kind === "file");
		const handles = items.map(item => item.getAsFileSystemHandle?.()); /* webkitGetAsEntry() fails in a page of a file */
		const pack = async (file, handle) => handle?.kind === "directory" ?
			new File([...await packFolder(handle), new Uint8Array(1024)], handle.name) : file;
		try {
			this.openFiles(await Promise.all(files.map(async (file, i) => pack(file, await handles[i]))), beside);
		} catch (error) {
			this.showMessage(error.message, true);
		}
	}

	/* Opens files that the user chose, instead of the open traces or below them.  If none is a trace, the open traces stay. */
	async openFiles(files, beside) {
		if (files.length && !beside) {
			this.chosen = files;
			this.surface.forgetOpening();
		}
		const {chosen} = this;
		for (const file of files)
			beside = chosen === this.chosen && await this.add(file.stream(), file.name, file.size, !beside) || beside;
	}

	save(blob, suffix) {
		const link = create("a", {href: URL.createObjectURL(blob), download: this.names[this.core.call.active()] + suffix});
		link.click();
		setTimeout(() => URL.revokeObjectURL(link.href), 60000);
	}

	exportSvg() {
		const at = this.core.call.svg(this.surface.active, this.theme) >>> 0;
		if (!at) {
			this.showMessage(this.core.cstring(this.core.call.last_error()), true);
			return;
		}
		const text = this.core.cstring(at);
		this.core.call.free(at);
		this.save(new Blob([text], {type: "image/svg+xml"}), ".svg");
	}

	exportPng() {
		const picture = this.surface.renderWhole(), ratio = picture.width / this.surface.canvas.clientWidth, style = getComputedStyle(this.element);
		const titled = create("canvas", {width: picture.width, height: picture.height + 46 * ratio}), context = titled.getContext("2d");
		context.fillStyle = style.backgroundColor;
		context.fillRect(0, 0, titled.width, titled.height);
		context.drawImage(picture, 0, 0);
		context.fillStyle = style.color;
		["caption_title", "caption_facts"].forEach((line, at) => {
			context.font = `${at ? "" : "bold "}${12 * ratio}px ${style.fontFamily}`;
			context.fillText(this.surface.ask(line, this.surface.active), 10 * ratio, picture.height + (18 + 18 * at) * ratio);
		});
		titled.toBlob(blob => blob && this.save(blob, ".png"), "image/png");
	}

	async copyLink() {
		const link = `${location.href.split("#")[0]}#${this.surface.ask("place")}`;
		try {
			await navigator.clipboard.writeText(link);
			this.status.textContent = "Link copied";
		} catch {
			this.openDialog("A link to this view", create("textarea", {value: link, readOnly: true}));
		}
	}
}
