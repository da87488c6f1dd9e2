
(() => {
	const references = ["for", "form", "headers", "list", "usemap", "aria-activedescendant", "aria-controls", "aria-describedby", "aria-details",
		"aria-errormessage", "aria-flowto", "aria-labelledby", "aria-owns"];
	let parts = [];

	// The outermost parts that are not rendered and to which no element outside refers.
	// A part is known by its markup and that of <html>, which has the theme and the language.
	axe.unrendered = () => {
		const outermost = [...document.body.querySelectorAll("*")].filter((e) => e.firstElementChild && !e.checkVisibility() &&
			(e.parentElement === document.body || e.parentElement.checkVisibility()));
		const referring = [...document.querySelectorAll(references.map((name) => `[${name}]`).join(", "))];
		const refers = (e, id) => references.some((name) => e.getAttribute(name)?.replace("#", "").split(/\s+/).includes(id));
		const root = document.documentElement.cloneNode(false).outerHTML;
		parts = outermost.filter((part) => [...part.querySelectorAll("[id]")].every(({id}) => !referring.some((e) => !part.contains(e) && refers(e, id))))
			.map((part) => ({part, html: root + part.outerHTML}));
		return parts.map(({html}) => html);
	};

	// The decorative pictures that consist of shapes alone. Shapes have neither a text nor
	// a background colour nor the focus.
	const pictures = () => [...document.querySelectorAll("svg[aria-hidden=true]")].filter((e) => e.firstElementChild && !e.textContent.trim() &&
		!e.querySelector(":not(g, path, rect, circle, ellipse, line, polyline, polygon), [id], [role], [tabindex]"));

	// Runs axe as if the known parts, by their number, and the pictures had no content. The
	// page itself is not changed.
	axe.runWithout = async (known, ...context) => {
		const root = document.documentElement.cloneNode(false).outerHTML;
		const same = known.map((i) => parts[i]).filter(({part, html}) => root + part.outerHTML === html).map(({part}) => part);
		const empty = new Set([...same, ...pictures()]);
		for (const e of empty) Object.defineProperty(e, "childNodes", {configurable: true, value: []});
		document.createTreeWalker = (from, show) => Document.prototype.createTreeWalker.call(document, from, show,
			(node) => empty.has(node.parentNode) ? NodeFilter.FILTER_REJECT : NodeFilter.FILTER_ACCEPT);
		try {
			return await axe.run(...context);
		} finally {
			delete document.createTreeWalker;
			for (const e of empty) delete e.childNodes;
		}
	};
})();
