package docs

import (
	"fmt"
	"net/http"
	"strings"
)

// assistantsPath is where programs that read instead of people expect a short map of a site
// (https://llmstxt.org).
const assistantsPath = "/llms.txt"

// showForAssistants answers with the API in Markdown: where its document and pages are, each
// operation in a line, and each code of an error with its meaning.
func (h *handlers) showForAssistants(w http.ResponseWriter, r *http.Request) error {
	api, at := h.reference(), h.address(r)
	var text strings.Builder
	fmt.Fprintf(&text, "# Dropbell\n\n> Coupon drops: reminders before a scarce coupon opens, claims, payments, campaigns. %s\n\n", api.Text)
	fmt.Fprintf(&text, "Operations are below %s. Send a key or token as `Authorization: Bearer`.\n\n", api.Base)
	for _, c := range api.Credentials {
		fmt.Fprintf(&text, "- `%s`: %s\n", c.Name, c.Text)
	}
	fmt.Fprintf(&text, `
An assistant reads this installation with `+"`dropbell mcp --server %[1]s`"+`, a server of the Model Context Protocol whose tools only read.

## Documents

- [OpenAPI 3.1](%[1]s/openapi.json): every operation with its fields, answers and errors
- [Reference](%[1]s%[2]s): the same for people, with examples in several languages
- [First steps](%[1]s%[2]s/start): from a key to a claimed coupon
- [Webhooks](%[1]s%[2]s/webhooks): events, signatures and repetitions
- [Web components](%[1]s%[2]s/components): elements for the pages of shops
- [Draws](%[1]s%[2]s/fair.md): the protocol dropbell-draw/1 with test vectors, for people who check a draw or write a verifier
`, at, Path)
	for _, g := range api.Groups {
		fmt.Fprintf(&text, "\n## %s\n\n%s\n\n", g.Name, g.Text)
		for _, op := range g.Operations {
			fmt.Fprintf(&text, "- [%s %s](%s%s#%s): %s\n", op.Method, op.Path, at, Path, op.ID, op.Summary)
		}
	}
	text.WriteString("\n## Errors\n\n")
	for _, c := range api.Codes {
		fmt.Fprintf(&text, "- `%s` (%d): %s\n", c.Code, c.Status, c.Meaning)
	}
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	_, err := fmt.Fprint(w, text.String())
	return err
}
