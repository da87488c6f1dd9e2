package drops

import (
	"net/http"
	"strconv"
	"strings"

	"dropbell/domain/template"
	campaignpages "dropbell/views/pages/campaigns"
	"dropbell/web/console/shell"
)

// choicesShown is how many names a field for templates offers.
const choicesShown = 10

// chooseTemplate answers a field for templates with the templates that its text may mean.
func (h *handlers) chooseTemplate(w http.ResponseWriter, r *http.Request) error {
	typed := ""
	for _, name := range []string{"q", "grant_template_id", "audience_template"} {
		if typed = strings.TrimSpace(r.FormValue(name)); typed != "" {
			break
		}
	}
	q := template.Query{Search: typed}
	if id, err := strconv.ParseInt(shell.TemplateRef(typed), 10, 64); err == nil && shell.TemplateRef(typed) != typed { // a name that was chosen
		q = template.Query{IDs: []int64{id}}
	}
	rows, err := h.inPhases(r, phases(q, h.Now()), phasePlace{}, choicesShown)
	if err != nil {
		return err
	}
	return h.Show(w, r, http.StatusOK, campaignpages.TemplateChoices(templatesOf(rows)).Part())
}
