// Finds sections of the site; SECTIONS, from sections.js, has each with its page, heading, address and words.
// SPDX-License-Identifier: ISC
const MOST = 20;
const field = document.querySelector("#find"), list = document.querySelector("#found"), base = document.documentElement.dataset.base;

// All words must be there; one in a heading counts most, one at a word's begin more than one within.
function score(section, words) {
	let sum = 0;
	for (const word of words) {
		const title = section.title.toLowerCase(), heading = section.heading.toLowerCase(), at = section.words.indexOf(word);
		if (at < 0 && !heading.includes(word) && !title.includes(word))
			return 0;
		sum += heading === word ? 100 : heading.includes(word) ? 40 : 0;
		sum += title === word ? 100 : title.includes(word) ? 20 : 0;
		sum += at < 0 ? 0 : at === 0 || section.words[at - 1] === " " ? 8 : 3;
	}
	return sum;
}

// Returns the text around the first match, with all matches marked, as nodes, so that no text becomes markup.
function excerpt(section, words) {
	const span = document.createElement("span"), at = Math.max(0, section.words.indexOf(words[0]) - 50);
	let rest = (at ? "… " : "") + section.text.slice(at, at + 150) + (at + 150 < section.text.length ? " …" : "");
	for (;;) {
		const next = words.map(word => ({word, at: rest.toLowerCase().indexOf(word)})).filter(hit => hit.at >= 0).sort((a, b) => a.at - b.at)[0];
		if (!next) {
			span.append(rest);
			return span;
		}
		const mark = document.createElement("mark");
		mark.textContent = rest.slice(next.at, next.at + next.word.length);
		span.append(rest.slice(0, next.at), mark);
		rest = rest.slice(next.at + next.word.length);
	}
}

function find() {
	const words = field.value.toLowerCase().split(/\s+/).filter(Boolean);
	list.replaceChildren();
	list.hidden = words.length === 0;
	field.setAttribute("aria-expanded", String(!list.hidden));
	const hits = SECTIONS.map(section => ({section, score: score(section, words)})).filter(hit => hit.score > 0)
		.sort((a, b) => b.score - a.score).slice(0, MOST);
	for (const {section} of hits) {
		const item = document.createElement("li"), link = document.createElement("a"), name = document.createElement("b");
		link.href = base + section.url;
		link.setAttribute("role", "option");
		name.textContent = section.heading === section.title ? section.title : `${section.title}: ${section.heading}`;
		link.append(name, excerpt(section, words));
		item.append(link);
		list.append(item);
	}
	if (hits.length === 0 && words.length > 0) {
		const none = document.createElement("p");
		none.textContent = "Nothing has these words.";
		list.append(none);
	}
	select(0);
}

let selected = 0;
function select(index) {
	const links = [...list.querySelectorAll("a")];
	selected = Math.max(0, Math.min(index, links.length - 1));
	links.forEach((link, i) => link.setAttribute("aria-selected", String(i === selected)));
	links[selected]?.scrollIntoView({block: "nearest"});
}

field.addEventListener("input", find);
field.addEventListener("keydown", event => {
	if (event.key === "ArrowDown" || event.key === "ArrowUp") {
		select(selected + (event.key === "ArrowDown" ? 1 : -1));
		event.preventDefault();
	} else if (event.key === "Escape") {
		field.value = "";
		find();
		field.blur();
	}
});
field.form.addEventListener("submit", event => {
	event.preventDefault();
	list.querySelectorAll("a")[selected]?.click();
});
list.addEventListener("click", () => {
	field.value = "";
	find();
});
document.addEventListener("keydown", event => {
	if (event.key === "/" && event.target !== field) {
		field.focus();
		event.preventDefault();
	}
});
document.addEventListener("click", event => {
	if (!field.form.contains(event.target))
		list.hidden = true;
});
